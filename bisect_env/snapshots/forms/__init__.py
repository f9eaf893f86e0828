"""One file a form: `recognise` tells by the content how likely it is this form, `read` makes a snapshot of it."""
