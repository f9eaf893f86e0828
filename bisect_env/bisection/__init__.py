"""From two snapshots to the culprit: mixed environments, measured by the engine, chosen by the search."""
