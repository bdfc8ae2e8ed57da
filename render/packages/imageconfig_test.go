package packages

import (
	"testing"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// by returns a demand for a signature by a key.
func by(key string) map[string]any {
	return map[string]any{"provider": "Cosign", "cosign": map[string]any{"authorities": []any{
		map[string]any{"name": "acme", "key": map[string]any{"secretRef": map[string]any{"name": key, "key": "cosign.pub"}}},
	}}}
}

func verifying(prefix string, demand map[string]any) map[string]any {
	return map[string]any{"matchImages": []any{map[string]any{"prefix": prefix}}, "verification": demand}
}

func rewriting(prefix, to string) map[string]any {
	return map[string]any{"matchImages": []any{map[string]any{"type": "Prefix", "prefix": prefix}}, "rewriteImage": map[string]any{"prefix": to}}
}

func pullingWith(prefix, secret string) map[string]any {
	return map[string]any{"matchImages": []any{map[string]any{"prefix": prefix}}, "registry": map[string]any{"authentication": map[string]any{"pullSecretRef": map[string]any{"name": secret}}}}
}

// ImageConfigs in the cluster count as in Crossplane, in the state after the commit is applied. A commit must not silently disable
// a demand of the cluster.
func TestImageConfigsOfTheCluster(t *testing.T) {
	const image = "a.example.org/acme/sea:v1"
	type result struct {
		Pulled, Secret, Demand string // the resulting image, Secret and demanding ImageConfig
		Dropped                []string
	}
	defaulted := by("acme")
	defaulted["cosign"].(map[string]any)["authorities"].([]any)[0].(map[string]any)["key"].(map[string]any)["hashAlgorithm"] = "sha256"
	anybody := by("acme")
	anybody["cosign"] = map[string]any{"authorities": []any{map[string]any{"name": "acme"}}}
	cases := map[string]struct {
		reason string
		commit map[string]map[string]any
		live   []LiveConfig
		want   result
	}{
		"Nobody": {
			reason: "Without an ImageConfig, an image is pulled by its own name.",
			want:   result{Pulled: image},
		},
		"Counts": {
			reason: "Crossplane applies every ImageConfig, whoever created it.",
			live: []LiveConfig{
				{Name: "mirror", Spec: rewriting("a.example.org/", "b.example.org/m/")},
				{Name: "password", Spec: pullingWith("b.example.org/", "pull")},
				{Name: "signed", Spec: verifying("b.example.org/m/acme", by("acme"))},
			},
			want: result{Pulled: "b.example.org/m/acme/sea:v1", Secret: "pull", Demand: "ImageConfig signed of the cluster"},
		},
		"LongestOfBoth": {
			reason: "For each purpose, the longest prefix of all ImageConfigs counts.",
			commit: map[string]map[string]any{"mine": rewriting("a.example.org/acme/", "c.example.org/"), "pull": pullingWith("c.", "short")},
			live:   []LiveConfig{{Name: "mirror", Spec: rewriting("a.example.org/", "b.example.org/")}, {Name: "password", Spec: pullingWith("c.example.org/", "long")}},
			want:   result{Pulled: "c.example.org/sea:v1", Secret: "long"},
		},
		"CommitWins": {
			reason: "The commit's object with the same name will replace the live one completely.",
			commit: map[string]map[string]any{"mirror": rewriting("a.example.org/", "c.example.org/")},
			live:   []LiveConfig{{Name: "mirror", Spec: rewriting("a.example.org/acme/", "b.example.org/")}},
			want:   result{Pulled: "c.example.org/acme/sea:v1"},
		},
		"Pruned": {
			reason: "An object that left this sync's commit will be pruned.",
			live:   []LiveConfig{{Name: "mirror", Spec: rewriting("a.example.org/", "b.example.org/"), Ours: true}, {Name: "password", Spec: pullingWith("a.example.org/", "pull")}},
			want:   result{Pulled: image, Secret: "pull"},
		},
		"Same": {
			reason: "An applied object does not change the demand, even if its live version has more defaults.",
			commit: map[string]map[string]any{"signed": verifying("a.example.org/", by("acme"))},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", defaulted), Ours: true}},
			want:   result{Pulled: image, Demand: "ImageConfig signed (signed.yaml)"},
		},
		"SameByAnother": {
			reason: "The same demand in another object is not a change.",
			commit: map[string]map[string]any{"mine": verifying("a.example.org/acme", by("acme"))},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme"))}},
			want:   result{Pulled: image, Demand: "ImageConfig mine (mine.yaml)"},
		},
		"Shadowed": {
			reason: "An object with the same name drops the demand.",
			commit: map[string]map[string]any{"signed": pullingWith("a.example.org/", "pull")},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme"))}},
			want:   result{Pulled: image, Secret: "pull", Dropped: []string{"signed by ImageConfig signed (signed.yaml) false"}},
		},
		"LongerPrefix": {
			reason: "The commit's longer prefix accepts another signer's key instead.",
			commit: map[string]map[string]any{"mine": verifying("a.example.org/acme/", by("mallory"))},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme"))}},
			want:   result{Pulled: image, Demand: "ImageConfig mine (mine.yaml)", Dropped: []string{"signed by ImageConfig mine (mine.yaml) true"}},
		},
		"Weakened": {
			reason: "Omitting the key weakens the demand.",
			commit: map[string]map[string]any{"signed": verifying("a.example.org/", anybody)},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme")), Ours: true}},
			want:   result{Pulled: image, Demand: "ImageConfig signed (signed.yaml)", Dropped: []string{"signed by ImageConfig signed (signed.yaml) true"}},
		},
		"RewrittenAway": {
			reason: "The rewritten image is verified, and no demand matches its name.",
			commit: map[string]map[string]any{"mine": rewriting("a.example.org/", "c.example.org/")},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme"))}},
			want:   result{Pulled: "c.example.org/acme/sea:v1", Dropped: []string{"signed by ImageConfig mine (mine.yaml) false"}},
		},
		"RewrittenTo": {
			reason: "A demand for the rewritten name applies, whatever the original name is.",
			commit: map[string]map[string]any{"mine": rewriting("a.example.org/", "c.example.org/"), "weak": verifying("c.example.org/acme/", by("mallory"))},
			live:   []LiveConfig{{Name: "signed", Spec: verifying("c.example.org/", by("acme"))}},
			want:   result{Pulled: "c.example.org/acme/sea:v1", Demand: "ImageConfig weak (weak.yaml)", Dropped: []string{"signed by ImageConfig weak (weak.yaml) true"}},
		},
		"PrunedDemand": {
			reason: "Pruning the ImageConfig drops its demand, perhaps on purpose.",
			live:   []LiveConfig{{Name: "signed", Spec: verifying("a.example.org/", by("acme")), Ours: true}},
			want:   result{Pulled: image, Dropped: []string{"signed by nothing false"}},
		},
		"Nonsense": {
			reason: "An object that the API server would refuse must have no effect and cause no error.",
			live:   []LiveConfig{{Name: "a"}, {Name: "b", Spec: map[string]any{"matchImages": "a", "rewriteImage": 1}}, {Name: "c", Spec: map[string]any{"matchImages": []any{1, map[string]any{"prefix": ""}}, "verification": true}}},
			want:   result{Pulled: image},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var commit ImageConfigs
			for name, spec := range tc.commit {
				commit.declare(Prefixed{Config: name, Origin: manifest.Origin{Path: name + ".yaml"}}, spec, func(int) manifest.Origin { return manifest.Origin{Path: name + ".yaml"} })
			}
			before := len(commit.Rewrites) + len(commit.Secrets) + len(commit.Verified)
			c := commit.with(tc.live)
			got := result{Pulled: c.Rewritten(image)}
			got.Secret = c.Secret(got.Pulled)
			if by, ok := c.Verification(got.Pulled); ok {
				got.Demand = by.String()
			}
			for _, d := range c.Dropped(image) {
				what := "nothing"
				if d.By.Config != "" {
					what = d.By.String()
				}
				another := " false"
				if d.Another {
					another = " true"
				}
				got.Dropped = append(got.Dropped, d.Demand.Config+" by "+what+another)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if after := len(commit.Rewrites) + len(commit.Secrets) + len(commit.Verified); after != before {
				t.Error("what the commit says was changed")
			}
		})
	}
}
