package plan

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// Migration returns the part of the plan that comes first: it repairs the managed fields of objects that no client could apply
// otherwise. A new plan follows it.
func (p Plan) Migration() Plan {
	p = p.Select(func(s Step) bool { return len(s.Migrates) > 0 && s.Writes() && s.Err == nil })
	p.Gone = nil
	return p
}

// noteMigrated returns findings about a migration from its outcomes; nil if nothing was migrated.
func noteMigrated(sent Plan, done []Outcome) []manifest.Finding {
	var names []string
	home := sent.Homes()
	for _, o := range done {
		if o.Did == DoMigrate && o.Err == nil {
			names = append(names, home(o.ID).String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	i := slices.IndexFunc(sent.Steps, func(s Step) bool { return home(s.ID).String() == names[0] })
	return []manifest.Finding{{
		Rule: "managed-fields-migrated", Severity: manifest.Note,
		Message: fmt.Sprintf("the managed fields of %s named a version that is no longer served (%s) and were migrated, for example of %s",
			manifest.Count(len(names), "object"), strings.Join(sent.Steps[i].Migrates, ", "), names[0]),
	}}
}
