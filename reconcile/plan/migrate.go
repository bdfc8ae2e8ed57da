package plan

// Migration returns the part of the plan that comes first: it repairs the managed fields of objects that no client could apply
// otherwise. A new plan follows it.
func Migration(p Plan) Plan {
	p = p.Select(func(s Step) bool { return len(s.Migrates) > 0 && s.Writes() && s.Err == nil })
	p.Gone = nil
	return p
}
