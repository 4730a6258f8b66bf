"""TFLite operators, translated into those of the native core."""
