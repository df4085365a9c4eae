"""The command line: one verb a file. Verbs import what is slow inside ``run``, so that ``--help`` is not."""
