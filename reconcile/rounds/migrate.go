package rounds

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// noteMigrated returns findings about a migration from its outcomes; nil if nothing was migrated.
func noteMigrated(sent plan.Plan, done []plan.Outcome) []manifest.Finding {
	var names []string
	home := sent.Homes()
	for _, o := range done {
		if o.Did == plan.DoMigrate && o.Err == nil {
			names = append(names, home(o.ID).String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	i := slices.IndexFunc(sent.Steps, func(s plan.Step) bool { return home(s.ID).String() == names[0] })
	return []manifest.Finding{{
		Rule: "managed-fields-migrated", Severity: manifest.Note, About: manifest.About{},
		Message: fmt.Sprintf("the managed fields of %s named a version that is no longer served (%s) and were migrated, for example of %s",
			manifest.Count(len(names), "object"), strings.Join(sent.Steps[i].Migrates, ", "), names[0]),
	}}
}
