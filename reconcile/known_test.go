package reconcile

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

// A preview counts what the merge adds. What the target has already is a number, wherever it stands in the head.
func TestKnownFindings(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {masts: {type: array, items: {type: object, properties: {size: {type: integer}}}}}}}}}}]
`
	definition := func(plural, kind string) string {
		return strings.NewReplacer("boats", plural, "Boat", kind).Replace(crd)
	}
	boat := func(name, masts string) string {
		return "---\napiVersion: example.org/v1\nkind: Boat\nmetadata: {name: " + name + ", namespace: here}\nspec: {masts: [" + masts + "]}\n"
	}
	const wrong, alsoWrong, good = `{size: large}`, `{sise: 3}`, `{size: 1}`
	pattern := func(globs ...string) string { return given.Policy("some", globs...) }
	base := map[string]string{
		"crd.yaml": crd, "boats.yaml": boat("a", wrong), "policy.yaml": pattern("ships.example.org"),
		"package/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n", "package/crds/crd.yaml": definition("rafts", "Raft"),
	}
	cases := map[string]struct {
		reason                  string
		head                    map[string]string // "" deletes a file
		errors, warnings, known int
		word                    report.Word
	}{
		"Nothing":     {"A merge that changes nothing is safe, whatever the target has.", nil, 0, 0, 2, report.Safe},
		"Other":       {"A change of something else makes nothing new.", map[string]string{"other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: here}\n"}, 0, 0, 2, report.Look},
		"RenamedFile": {"The file was renamed.", map[string]string{"boats.yaml": "", "fleet/all.yaml": boat("a", wrong)}, 0, 0, 2, report.Safe},
		"MovedLine":   {"Another object was put before it.", map[string]string{"boats.yaml": boat("b", good) + boat("a", wrong)}, 0, 0, 2, report.Look},
		"MovedItem":   {"Another item was put before the field.", map[string]string{"boats.yaml": boat("a", good+", "+wrong)}, 0, 0, 2, report.Look},
		"Count":       {"The message counts the definitions that a pattern is matched with.", map[string]string{"package/crds/more.yaml": definition("skiffs", "Skiff")}, 0, 0, 2, report.Safe},
		"Twice":       {"The same mistake in a second item is new.", map[string]string{"boats.yaml": boat("a", wrong+", "+wrong)}, 1, 0, 2, report.Blocked},
		"Fixed":       {"One was fixed, and another was added.", map[string]string{"boats.yaml": boat("a", alsoWrong)}, 1, 0, 1, report.Blocked},
		"Added":       {"Another object has it.", map[string]string{"boats.yaml": boat("a", wrong) + boat("b", wrong)}, 1, 0, 2, report.Blocked},
		"Renamed":     {"An object with another name is another object.", map[string]string{"boats.yaml": boat("b", wrong)}, 1, 0, 1, report.Blocked},
		"Pattern":     {"A second pattern matches nothing.", map[string]string{"policy.yaml": pattern("ships.example.org", "tugs.example.org")}, 0, 1, 2, report.Look},
		"Mended":      {"All of it was fixed.", map[string]string{"boats.yaml": boat("a", good), "policy.yaml": pattern("rafts.example.org")}, 0, 0, 0, report.Look},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, head := fstest.MapFS{}, fstest.MapFS{}
			for path, text := range base {
				before[path], head[path] = &fstest.MapFile{Data: []byte(text)}, &fstest.MapFile{Data: []byte(text)}
			}
			for path, text := range tc.head {
				if head[path] = (&fstest.MapFile{Data: []byte(text)}); text == "" {
					delete(head, path)
				}
			}
			r := Reconciler{Sync: given.Sync, Source: commits{"base": before, "head": head}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			counts := map[manifest.Severity]int{}
			for _, f := range made.Findings {
				counts[f.Severity]++
			}
			if counts[manifest.Error] != tc.errors || counts[manifest.Warning] != tc.warnings || len(made.Known) != tc.known || made.Judgement.Word != tc.word {
				t.Errorf("%s\nword %s, errors %d, warnings %d, known %d; want %s, %d, %d, %d\nnew: %v\nknown: %v", tc.reason, made.Judgement.Word, counts[manifest.Error], counts[manifest.Warning], len(made.Known),
					tc.word, tc.errors, tc.warnings, tc.known, made.Findings, made.Known)
			}
			if fails := made.Exits(report.Threshold{report.OnFindings}) == report.ExitDiffers; fails != (tc.errors+tc.warnings > 0) {
				t.Errorf("%s\n--exit-on findings fails: %t", tc.reason, fails)
			}
		})
	}
}

// What a commit hides from Headgate is seen before the merge: objects that are skipped from now on, and kinds that lose their schema.
func TestHidden(t *testing.T) {
	const object = "apiVersion: example.org/v1\nkind: Boat\nmetadata: {name: a, namespace: here}\nspec: {sise: 1}\n"
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]
`
	base := map[string]string{"boat.yaml": object, "crd.yaml": crd}
	cases := map[string]struct {
		reason    string
		base      map[string]string
		head      map[string]string
		headline  string
		unchecked int
	}{
		"Ignored":   {"A line of .headgateignore hides an object and its error.", nil, map[string]string{".headgateignore": "boat.yaml\n"}, "from Headgate, which stays in the files", 0},
		"Directory": {"A pattern hides a directory.", map[string]string{"fleet/boat.yaml": object, "boat.yaml": ""}, map[string]string{".headgateignore": "fleet/\n", "fleet/boat.yaml": object, "boat.yaml": ""}, "from Headgate, which stays in the files", 0},
		"Kustomize": {
			"A kustomization drops a file that stays. A pass deletes the object.", map[string]string{"kustomization.yaml": "resources: [boat.yaml, crd.yaml]\n"},
			map[string]string{"kustomization.yaml": "resources: [crd.yaml]\n"}, "deletes Boat here/a", 0,
		},
		"Schema": {"Without its schema, the object has no error.", nil, map[string]string{"crd.yaml": ""}, "no longer checks objects of 1 kind", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := func(changes map[string]string) fstest.MapFS {
				files := fstest.MapFS{}
				for _, all := range []map[string]string{base, changes} {
					for path, text := range all {
						if files[path] = (&fstest.MapFile{Data: []byte(text)}); text == "" {
							delete(files, path)
						}
					}
				}
				return files
			}
			r := Reconciler{Sync: given.Sync, Source: commits{"base": tree(tc.base), "head": tree(tc.head)}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			c := report.Comment(made, 65_536)
			if made.Judgement.Word == report.Safe || !strings.Contains(strings.SplitN(c, "\n", 2)[0], tc.headline) || made.Preview.Untouched || len(made.Preview.Unchecked) != tc.unchecked {
				t.Errorf("%s\nthe headline does not say %q:\n%s", tc.reason, tc.headline, c)
			}
		})
	}
}

// Without a base, the head is judged alone: never safe, never compared with nothing, and never passed over because both fail alike.
func TestBrokenBase(t *testing.T) {
	const broken, config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: here}\n"
	const refused = config + "data: {a: 1}\n"
	files := func(texts ...string) fstest.MapFS {
		all := fstest.MapFS{}
		for i, text := range texts {
			all[string(rune('a'+i))+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		return all
	}
	cases := map[string]struct {
		reason     string
		base, head fstest.MapFS
		word       report.Word
		untouched  bool
		fails      bool
	}{
		"Repair":    {"A repair is not blocked.", files(broken), files(config), report.Look, false, false},
		"Refused":   {"An error of the head blocks, because nobody knows whether it is old.", files(broken), files(refused), report.Blocked, false, false},
		"Same":      {"A pull request that changes nothing of the sync is not to blame.", files(broken), files(broken), report.Blocked, true, true},
		"Unchanged": {"A pull request that changes the sync and leaves the error cannot be judged.", files(broken), files(broken, config), report.Blocked, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Reconciler{Sync: given.Sync, Source: commits{"base": hashed{tc.base}, "head": hashed{tc.head}}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if made = made.On(nil); made.Judgement.Word != tc.word || (made.Preview != nil && made.Preview.Untouched) != tc.untouched || (err != nil) != tc.fails {
				t.Errorf("%s\nPreview(...): %s, untouched %v, %v", tc.reason, made.Judgement.Word, made.Preview, err)
			}
			if tc.fails {
				return
			}
			compared, err := r.Compare(t.Context(), "base", "head")
			if err != nil || compared.Judgement.Word != tc.word || len(compared.Findings) != len(made.Findings) {
				t.Errorf("%s\nCompare(...): %s, %v, %v", tc.reason, compared.Judgement.Word, compared.Findings, err)
			}
			if made.Exits(report.Threshold{report.OnBreaking}) == report.ExitSuccess || made.Exits(report.Threshold{report.OnAny}) == report.ExitSuccess {
				t.Errorf("%s\nwhat breaks is not known, and is no success", tc.reason)
			}
			if c := report.Comment(made, 65_536); !strings.Contains(c, "judged alone: its base base cannot be rendered, so nothing was compared.") {
				t.Errorf("%s\nthe comment does not say so:\n%s", tc.reason, c)
			}
		})
	}
}

// hashed is a tree whose files have hashes, as those of a repository.
type hashed struct{ fstest.MapFS }

func (h hashed) Hash(name string) (string, error) {
	text, err := h.ReadFile(name)
	return string(text), err
}
