"""What a device runs: graphs, shortlists, bundles."""
