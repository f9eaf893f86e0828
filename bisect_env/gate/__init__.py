"""The gate: may this change touch the training hosts? Two snapshots, interleaved trials, a line for each question."""
