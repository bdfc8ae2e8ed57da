package plan

import "headgate.dev/headgate/reconcile/diff"

// Mask returns a mask for the values that were copied from Secrets into the object, directly or through other objects.
func (s Step) Mask() diff.Mask { return s.Hidden }
