"""The parts of the repeated-order experiment; `memlab.experiments.repeated_order` puts them together."""
