"""Producer ids now; the transaction coordinator joins them later."""
