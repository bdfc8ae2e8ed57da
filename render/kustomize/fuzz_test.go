package kustomize_test

import (
	"io/fs"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// A noted is a commit that records which files are opened.
type noted struct {
	fs.FS
	opened []string
}

func (n *noted) Open(name string) (fs.File, error) {
	n.opened = append(n.opened, name)
	return n.FS.Open(name)
}

// Whatever the content of a commit is, either it is refused, or the result is built only from files of the commit, and everything
// in it has a location in the commit.
func FuzzDirectories(f *testing.F) {
	const (
		resource = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
		patch    = "- {op: add, path: /data/c, value: d}\n"
		other    = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: p.yaml\ntarget: {kind: ConfigMap}\n"
	)
	for _, kustomization := range []string{
		"resources: [r.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n",
		"resources: [r.yaml, ../base]\ntransformers: [o.yaml]\nnamePrefix: x-\n",
		"resources: [https://example.org/x, github.com/a/b, git@example.org:a/b]\n",
		"bases: [../base]\ncomponents: [../base]\ncrds: [o.yaml]\nconfigurations: [o.yaml]\nopenapi: {path: o.yaml}\n",
		"configMapGenerator: [{name: x, files: [r.yaml, k=p.yaml], envs: [o.yaml], literals: [a=b]}]\n",
		"secretGenerator: [{name: x, env: ../../o}]\nreplacements: [{path: o.yaml}]\nvars: [{name: X, objref: {kind: ConfigMap, name: a, apiVersion: v1}}]\n",
		"resources: [r.yaml]\npatchesStrategicMerge: [p.yaml, o.yaml]\npatchesJson6902: [{path: p.yaml, target: {version: v1, kind: ConfigMap, name: a}}]\n",
		"generators: [o.yaml, '{apiVersion: x/v1, kind: Evil, metadata: {name: e}}']\nvalidators: [o.yaml]\n",
		"resources: [r.yaml]\nreplacements: [{source: {kind: ConfigMap, fieldPath: data}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x], options: {create: true}}]}]\n",
		"helmCharts: [{name: x}]\n",
	} {
		f.Add(kustomization, patch, resource, other)
	}
	f.Add("resources: [o.yaml]\n", resource, other, "kind: ConfigMap\nmetadata: {name: github.com/a/b}\n")
	l := newLookout(f)
	f.Fuzz(func(t *testing.T, kustomization, patch, resource, other string) {
		files := &noted{FS: tree(map[string]string{
			"app/kustomization.yaml":  kustomization,
			"app/p.yaml":              patch,
			"app/r.yaml":              resource,
			"app/o.yaml":              other,
			"base/kustomization.yaml": "resources: [b.yaml]\n",
			"base/b.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n",
			"outside.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outside}\n",
		})}
		made, problems := build(files, manifest.Limits{FileBytes: 1 << 16, TotalBytes: 1 << 20, Documents: 100, Depth: 20}, "app")
		if seen := l.seen(); len(seen) > 0 {
			t.Fatal(seen)
		}
		if len(problems) > 0 {
			if len(made.Documents) > 0 {
				t.Error("it is refused and built")
			}
			return
		}
		for _, name := range files.opened {
			if info, err := fs.Stat(files.FS, name); err == nil && info.Mode().IsRegular() && !made.Reads[name] {
				t.Errorf("%s was read, and is not among the files that took part", name)
			}
		}
		for _, d := range made.Documents {
			if _, err := fs.Stat(files.FS, d.Origin.Path); err != nil || d.Origin.Line == 0 || !made.Reads[d.Origin.Path] {
				t.Errorf("%s %s comes from %s", d.Header.Kind, d.Header.Name, d.Origin)
			}
			if _, err := d.Decode(); err != nil {
				t.Error(err)
			}
		}
	})
}
