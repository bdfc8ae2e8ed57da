package plan

// InstanceCategories are the categories of the kinds whose objects stand for something outside of the cluster. Crossplane sets
// them.
var InstanceCategories = []string{"managed", "composite", "claim"}

// DeclaresCRD reports whether the step is for a CRD that the commit declares.
func (s Step) DeclaresCRD() bool {
	return s.ID.IsCRD() && !s.Is(Prune) && s.Action != Release
}
