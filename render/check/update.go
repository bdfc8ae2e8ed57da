package check

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Updates checks the updates from the objects of one commit to those of another: immutable fields, and other rules that compare an
// object with the one before. The findings are sorted.
func Updates(before, after []render.Object, sources ...Source) []manifest.Finding {
	all := many(sources)
	old := make(map[manifest.ID]render.Object, len(before))
	for _, o := range before {
		old[o.ID] = o
	}
	results := make([]result, len(after))
	manifest.Each(len(after), func(i int) {
		was, is := old[after[i].ID]
		if is && was.Digest != after[i].Digest {
			results[i] = all.update(after[i], was)
		}
	})
	var found []manifest.Finding
	for _, of := range results {
		found = append(found, of.findings...)
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return found
}

// update checks one update.
func (all many) update(o, old render.Object) (r result) {
	kind, _ := all.kind(o.ID.GroupKind())
	updater, ok := kind.(Updater)
	if !ok {
		return r
	}
	is, err := o.Content()
	if err != nil {
		return r // render reports it
	}
	was, err := old.Content()
	if err != nil {
		return r
	}
	r.place(o, RuleRefused, manifest.Error, "the API server refuses the change of %s: %s", updater.Update(is, was))
	return r
}
