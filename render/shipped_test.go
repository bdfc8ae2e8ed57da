package render_test

import (
	"bytes"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// shippedAWS returns a part of provider-upjet-aws as its build publishes it: every CRD has the upstream patch. It includes all
// kinds with several versions and all exempt kinds.
func shippedAWS(t *testing.T, aws fstest.MapFS) (files fstest.MapFS, several []string) {
	t.Helper()
	var patch struct {
		Spec struct {
			Conversion map[string]any `json:"conversion"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(aws["upstream/kustomize/webhook.yaml"].Data, &patch); err != nil || len(patch.Spec.Conversion) == 0 {
		t.Fatalf("upstream patches nothing: %v", err)
	}
	conversion, err := yaml.Marshal(map[string]any{"conversion": patch.Spec.Conversion})
	if err != nil {
		t.Fatal(err)
	}
	spec := append([]byte("\nspec:\n  "), bytes.ReplaceAll(bytes.TrimSpace(conversion), []byte("\n"), []byte("\n  "))...)

	files = fstest.MapFS{"crossplane.yaml": aws["crossplane.yaml"]}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(aws)) {
		file := aws[name]
		if !strings.HasPrefix(name, "crds/") {
			continue
		}
		versions := bytes.Count(file.Data, []byte("\n    served: "))
		n++
		if versions == 1 && n%40 != 0 && !strings.Contains(name, "providerconfig") {
			continue
		}
		if versions > 1 {
			several = append(several, name)
		}
		files[name] = &fstest.MapFile{Data: bytes.Replace(file.Data, []byte("\nspec:"), spec, 1)}
	}
	return files, several
}

// The CRDs in provider packages name a conversion webhook, even if they need no conversion. The package does not contain the
// webhook's address.
//
//test:long
func TestShipped(t *testing.T) { fixtures.Large(t, shipped) }

func shipped(t *testing.T, provider fstest.MapFS) {
	t.Helper()
	files, several := shippedAWS(t, provider)
	conversions := func(t *testing.T, want render.Desired) []any {
		t.Helper()
		var all []any
		for _, o := range want.Objects {
			if !o.ID.IsCRD() && !crossplane.IsMRD(o.ID) {
				continue
			}
			content, err := o.Content()
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := content.Object["spec"].(map[string]any)
			all = append(all, spec["conversion"])
		}
		return all
	}

	t.Run("Safe", func(t *testing.T) {
		_, err := render.Render(render.Input{Files: withPolicy(files, "*")}, render.Options{})
		problems, ok := errors.AsType[catalogue.Errors](err)
		if !ok || len(problems) != len(several) || len(several) != 316 {
			t.Fatalf("every one of the 316 with several versions, and no other, is an error; got %d of %d: %v", len(problems), len(several), err)
		}
		at := regexp.MustCompile(`^package/crds/\S+\.yaml:[0-9]+: CRD \S+ converts between its [23] versions by a webhook`)
		for _, p := range problems {
			if !at.MatchString(p.Error()) {
				t.Fatalf("want the place and what to do, got %v", p)
			}
		}
	})
	t.Run("SafeWhereItIs", func(t *testing.T) {
		single := withPolicy(files, "*")
		for _, name := range several {
			delete(single, "package/"+name)
		}
		all := conversions(t, mustRender(t, single, render.Options{}))
		for _, c := range all {
			if c != nil {
				t.Fatalf("nothing is converted in a CRD of one version, and no service answers the webhook: want none, got %v", c)
			}
		}
		if len(all) < 40 {
			t.Errorf("%d CRDs", len(all))
		}
	})
	t.Run("None", func(t *testing.T) {
		how := render.Options{Conversion: render.Conversion{Strategy: render.ConversionNone}}
		for _, c := range conversions(t, mustRender(t, withPolicy(files, "*"), how)) {
			if c != nil {
				t.Fatalf("the options declare that there is none, got %v", c)
			}
		}
	})
	injected := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{
			"caBundle": caBundle,
			"service":  map[string]any{"name": "provider-aws", "namespace": "crossplane-system", "path": "/convert", "port": int64(9443)},
		},
	}}
	for _, owner := range []render.Owner{render.OwnerHeadgate, render.OwnerCrossplane} {
		t.Run("Inject"+string(owner), func(t *testing.T) {
			how := render.Options{Owner: owner, Conversion: render.Conversion{Strategy: render.ConversionInject, Namespace: "crossplane-system", CABundle: theCA}}
			all := conversions(t, mustRender(t, withPolicy(files, "*"), how))
			for _, c := range all {
				if diff := cmp.Diff(any(injected), c); diff != "" {
					t.Fatalf("every CRD, exempt or not, as Crossplane does it (-want +got):\n%s", diff)
				}
			}
			if len(all) != len(files)-1 {
				t.Errorf("%d of %d", len(all), len(files)-1)
			}
		})
	}
}
