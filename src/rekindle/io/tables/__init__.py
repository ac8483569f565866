"""Tables of the nouns of the model, as csv and parquet."""
