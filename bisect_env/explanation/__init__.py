"""Why a cell fails: what its threads did with the state that they share, and which explanations that leaves."""
