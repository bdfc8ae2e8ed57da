package check

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	if !ok || !updater.Compares() {
		return r
	}
	found, err := learned(o, "update 1 "+updater.Key()+" "+old.Digest, func(is *unstructured.Unstructured) (Result, error) {
		was, err := old.Content()
		if err != nil {
			return Result{}, err
		}
		return Result{Errors: updater.Update(is, was)}, nil
	})
	if err != nil {
		return r // render reports it
	}
	r.place(o, RuleRefused, manifest.Error, "the API server refuses the change of %s: %s", found.Errors)
	return r
}
