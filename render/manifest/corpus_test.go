package manifest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/corpus"
)

// inCorpus calls each with the package metadata and the CRDs of every package of the corpus.
func inCorpus(tb testing.TB, each func(archive, name string, raw []byte)) {
	tb.Helper()
	for _, archive := range append(corpus.Small(), corpus.Core, corpus.MadeUp, corpus.AWS) {
		files, err := corpus.Open(archive)
		if errors.Is(err, corpus.ErrAbsent) {
			continue // the made one has its size
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if name == "crossplane.yaml" || strings.HasPrefix(name, "crds/") {
				each(archive, name, files[name].Data)
			}
		}
	}
}
