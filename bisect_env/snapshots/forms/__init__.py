"""The forms people have their environments in: one file each, recognised by what stands in it."""
