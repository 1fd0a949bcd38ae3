"""One model call, whoever answers it: keys are rotated, providers fall back, and every attempt is told."""
