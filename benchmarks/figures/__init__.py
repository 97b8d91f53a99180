"""What several runs measured: medians, spreads, ratios and bars, and how they are printed. Pure."""
