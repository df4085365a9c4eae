// Hides what the emulator's Cortex-A72 has and the Raspberry Pi 4's lacks (AES, SHA, PMULL), from programs that
// ask the C library. Preloaded in the guest, where only fp, asimd, crc32 and cpuid remain.

void *dlsym(void *, const char *);

unsigned long getauxval(unsigned long type) {
  unsigned long (*next)(unsigned long) = dlsym((void *)-1L, "getauxval"); // RTLD_NEXT
  if (type == 16) // AT_HWCAP
    return next(type) & (1 << 0 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 11);
  return type == 26 ? 0 : next(type); // AT_HWCAP2
}
