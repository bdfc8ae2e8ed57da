package plan

import "slices"

// Select returns the plan with only the steps for which keep returns true.
func (p Plan) Select(keep func(Step) bool) Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return !keep(s) })
	return p
}

// Continues reports whether another round follows, so that this one should not wait longer than necessary.
func Continues(p Plan) bool { return p.PrunesLater || Coming(p, nil) }
