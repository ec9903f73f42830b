"""Networks that denoise latents, by the `_class_name` of diffusers."""
