"""What translating costs on a device: counted on an emulated Cortex-A72, measured on a machine behind ssh."""
