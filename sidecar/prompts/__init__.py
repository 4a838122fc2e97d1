"""Items → chat turns → chat template → tokens, and tokens back to text."""
