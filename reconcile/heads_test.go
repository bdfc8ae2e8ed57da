package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// The author of a head must not decide what Headgate asks for. So a preview first reads what the target names: at the merge base, and
// now, also if it cannot be rendered.
func TestHeadIsFetchedWithinItsReach(t *testing.T) {
	naming := func(host, more string) fstest.MapFS {
		text := fmt.Sprintf("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {package: '%s/acme/sea:v1.0.0', packagePullSecrets: [{name: %s}]}\n", host, host[:4])
		return fstest.MapFS{"provider.yaml": {Data: []byte(text + more)}}
	}
	const broken = "---\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, more := range map[string]string{"Whole": "", "Broken": broken} {
		t.Run(name, func(t *testing.T) {
			target := commits{"base": naming("base.example.org", more), "now": naming("later.example.org", more)}
			var named packages.Named
			r := Reconciler{Source: target, Heads: func(_ context.Context, target packages.Named) (Source, error) {
				named = target
				return commits{"head": naming("head.example.org", "")}, nil
			}}
			if _, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head", Target: "now"}); err != nil {
				t.Fatal(err)
			}
			want := packages.Named{Images: []string{"base.example.org/acme/sea", "later.example.org/acme/sea"}, Secrets: []string{"base", "late"}}
			if diff := cmp.Diff(want, named); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	r := Reconciler{Source: commits{"base": fstest.MapFS{}}, Heads: func(context.Context, packages.Named) (Source, error) { return nil, errors.New("no limits") }}
	if _, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"}); err == nil {
		t.Error("a head without limits is read")
	}
}
