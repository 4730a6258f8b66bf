"""The program file of the native core: steps over tensors at their planned places."""
