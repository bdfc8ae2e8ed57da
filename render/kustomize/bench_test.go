package kustomize_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// BenchmarkDirectories measures an overlay and compares it with kustomize on the same files, as in kubectl: reading, building and
// encoding.
func BenchmarkDirectories(b *testing.B) {
	const overlay = "resources: [../base]\nnamePrefix: x-\ncommonAnnotations: {a: b}\npatches: [{path: p.yaml}]\n"
	const patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c0}\ndata: {a: c}\n"
	commit := func(documents map[string]string) map[string]string {
		files := map[string]string{"o/kustomization.yaml": overlay, "o/p.yaml": patch}
		var names []string
		for name, text := range documents {
			names = append(names, name)
			files["base/"+name] = text
		}
		list, err := json.Marshal(map[string][]string{"resources": names})
		if err != nil {
			b.Fatal(err)
		}
		files["base/kustomization.yaml"] = string(list)
		return files
	}
	configMaps := func(n int) map[string]string {
		documents := map[string]string{}
		for i := range n {
			documents[fmt.Sprintf("c%d.yaml", i)] = configMap(fmt.Sprintf("c%d", i))
		}
		return documents
	}
	crds := func(n int) map[string]string {
		documents := configMaps(1)
		corpus := fixtures.Corpus(b, "provider-upjet-aws")
		for _, name := range slices.Sorted(maps.Keys(corpus)) {
			if strings.HasPrefix(name, "crds/") && len(documents) <= n {
				documents[name] = string(corpus[name].Data)
			}
		}
		return documents
	}
	for _, c := range []struct {
		name      string
		documents func() map[string]string
	}{
		{"20ConfigMaps", func() map[string]string { return configMaps(20) }},
		{"500ConfigMaps", func() map[string]string { return configMaps(500) }},
		{"100CRDs", func() map[string]string { return crds(100) }},
	} {
		b.Run(c.name+"/Headgate", func(b *testing.B) {
			files := tree(commit(c.documents()))
			for b.Loop() {
				if _, problems := build(files, manifest.Limits{}); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
		b.Run(c.name+"/kustomize", func(b *testing.B) {
			disk := filesys.MakeFsInMemory()
			for name, text := range commit(c.documents()) {
				if err := disk.WriteFile("/"+name, []byte(text)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/o")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := made.AsYaml(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
