"""SmolLM2-135M on the CPU."""
