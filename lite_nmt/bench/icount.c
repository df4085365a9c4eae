// Counts what an emulated program does: a plugin for qemu-user 7.2 (plugin interface, version 1).
//
//   cc -O2 -shared -fPIC -o icount.so icount.c
//   qemu-aarch64 -plugin ./icount.so[,cache=on] -d plugin -D LOG PROGRAM
//
// LOG gets a line "mark N instructions misses writebacks shared-misses shared-writebacks" whenever the program
// calls getpriority(0x6c6d74, N), which the kernel refuses and which nothing else calls, and one "exit" line.
// With cache=on every load and store goes through a model of Cortex-A72's data caches as in the BCM2711:
// L1 32 KB, 2 ways; L2 1 MB, 16 ways, least recently used goes first, written back when dirty, lines of 64 bytes.
// "shared" is a second L2 of 256 KB, what is left to each of four busy cores. Left out: instruction fetches, page
// tables, prefetching (it moves the same lines, earlier), and that the real caches go by physical address.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The part of qemu's plugin interface that is used here.
typedef uint64_t plugin_id;
typedef void (*on_memory)(unsigned cpu, uint32_t info, uint64_t address, void *data);
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *counter, uint64_t addend);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_memory, int registers, int reads_writes, void *);
void qemu_plugin_register_vcpu_syscall_cb(
    plugin_id, void (*)(plugin_id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
bool qemu_plugin_mem_is_store(uint32_t info);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
void qemu_plugin_outs(const char *);

enum { ADD = 0, NO_REGISTERS = 0, READS_AND_WRITES = 3, GETPRIORITY = 141, MARK = 0x6c6d74, LINE = 6, DIRTY = 1 };

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t instructions;
static bool cache_on;

// A set is an array of lines, the most recently used first; an entry is line << 1 | dirty, and 0 where empty.
struct cache {
  uint64_t *entries;
  unsigned sets, ways;
  uint64_t misses, writebacks;
};
static uint64_t l1_entries[256 * 2], l2_entries[1024 * 16], shared_entries[256 * 16];
static struct cache l1 = {l1_entries, 256, 2, 0, 0};
static struct cache l2 = {l2_entries, 1024, 16, 0, 0};
static struct cache shared = {shared_entries, 256, 16, 0, 0};

// Touch a line: whether it was there, and in *victim the entry that had to go, or 0.
static bool touch(struct cache *cache, uint64_t line, uint64_t dirty, uint64_t *victim) {
  uint64_t *set = cache->entries + line % cache->sets * cache->ways;
  unsigned last = 0;
  while (last < cache->ways - 1 && set[last] >> 1 != line)
    last++;
  uint64_t entry = set[last];
  bool hit = entry >> 1 == line;
  *victim = hit ? 0 : entry;
  memmove(set + 1, set, last * sizeof *set);
  set[0] = line << 1 | dirty | (hit ? entry & DIRTY : 0);
  return hit;
}

// What L1 asks of an L2: a line it lacks, and room for a dirty line that it gives up.
static void second_level(struct cache *cache, uint64_t line, uint64_t given_up) {
  uint64_t victim;
  if (given_up & DIRTY) {
    touch(cache, given_up >> 1, DIRTY, &victim);
    cache->writebacks += victim & DIRTY;
  }
  cache->misses += !touch(cache, line, 0, &victim);
  cache->writebacks += victim & DIRTY;
}

static void memory(unsigned cpu, uint32_t info, uint64_t address, void *data) {
  uint64_t last = (address + (1u << qemu_plugin_mem_size_shift(info)) - 1) >> LINE, given_up;
  for (uint64_t line = address >> LINE; line <= last; line++)
    if (!touch(&l1, line, qemu_plugin_mem_is_store(info), &given_up)) {
      second_level(&l2, line, given_up);
      second_level(&shared, line, given_up);
    }
}

static void translated(plugin_id id, struct qemu_plugin_tb *block) {
  size_t length = qemu_plugin_tb_n_insns(block);
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &instructions, length);
  for (size_t i = 0; cache_on && i < length; i++)
    qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), memory, NO_REGISTERS, READS_AND_WRITES, NULL);
}

static void report(const char *what) {
  char text[256];
  snprintf(text, sizeof text, "%s %llu %llu %llu %llu %llu\n", what, (unsigned long long)instructions,
           (unsigned long long)l2.misses, (unsigned long long)l2.writebacks, (unsigned long long)shared.misses,
           (unsigned long long)shared.writebacks);
  qemu_plugin_outs(text);
}

static void system_call(plugin_id id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                        uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  char name[32];
  if (number != GETPRIORITY || a1 != MARK)
    return;
  snprintf(name, sizeof name, "mark %u", (unsigned)a2);
  report(name);
}

static void ended(plugin_id id, void *data) { report("exit 0"); }

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int count,
                                                               char **arguments) {
  cache_on = count > 0 && strcmp(arguments[0], "cache=on") == 0;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, system_call);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
