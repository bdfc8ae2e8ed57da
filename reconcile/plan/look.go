package plan

import "headgate.dev/headgate/reconcile/diff"

// Would returns the action of the other tool in an effect of kind Apply; "" for other effects. An object that is being deleted is
// created again.
func (e Effect) Would() Action {
	switch {
	case e.Kind != Apply:
		return ""
	case e.Change.Deleting:
		return Create
	}
	return e.Change.Action
}

// Changes returns the changes that the other tool makes in an effect of kind Apply.
func (e Effect) Changes() []diff.Change {
	if e.Kind != Apply {
		return nil
	}
	return e.Change.Changes()
}
