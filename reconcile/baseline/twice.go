package baseline

import (
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// refuseTwice refuses objects that are the same in the cluster although one of them has no namespace, as a pass does.
func refuseTwice(objects []render.Object, home func(manifest.ID) manifest.ID) error {
	at := make(map[manifest.ID]manifest.Origin, len(objects))
	var problems catalogue.Errors
	for _, o := range objects {
		id := home(o.ID)
		if first, twice := at[id]; twice {
			problems = append(problems, catalogue.Errorf(o.Origin, "%s is the same object as the one at %s; keep one of them", id, first))
			continue
		}
		at[id] = o.Origin
	}
	return problems.OrNil()
}
