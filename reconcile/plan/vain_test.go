package plan

import (
	"errors"
	"testing"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestUnfinishedKeeps proves that an object is not pruned if its replacement was not created, or if an object that names it was not
// applied. The exception is an object that is in the way of such an object.
func TestUnfinishedKeeps(t *testing.T) {
	from := manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "a"}
	to := manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "b"}
	elsewhere := manifest.ID{Kind: "ConfigMap", Namespace: "other", Name: "a"}
	home := manifest.ID{Kind: "Namespace", Name: "team"}
	no := errors.New(`ConfigMap "b" is invalid`)
	create := func(id manifest.ID, path string) Step {
		return Step{Action: Create, Cause: Commit, ID: id, Origin: manifest.Origin{Path: path, Line: 1}}
	}
	again := create(to, "a.yaml")
	again.Cause = Drift
	goes := func(id manifest.ID, path string) Step {
		return Step{Action: Prune, ID: id, Removal: Removal{path: path}}
	}
	with := func(s Step, live, wanted map[string]any) Step {
		if live != nil {
			s.Live = &unstructured.Unstructured{Object: live}
		}
		s.object = func() (*unstructured.Unstructured, error) { return &unstructured.Unstructured{Object: wanted}, nil }
		return s
	}
	waiting := create(to, "b.yaml")
	waiting.Waits = []Reason{AwaitsAbsent.With()}
	user := Step{Action: Update, ID: manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "team", Name: "web"}}
	uses := func(name string) map[string]any {
		return map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web", "labels": map[string]any{"app": "labelled"}}, "spec": map[string]any{
			"volumes": []any{map[string]any{"configMap": map[string]any{"name": name}}}, "url": "http://" + name + "-svc.team:80/"}}
	}
	far := user
	far.ID.Namespace = "far"
	annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"config.kubernetes.io/depends-on": "/namespaces/team/ConfigMap/a"}}}
	crd := Step{Action: Update, ID: CRD("boats.example.org")}
	described := map[string]any{"spec": map[string]any{"versions": []any{"a"}, "conversion": map[string]any{"service": map[string]any{"name": "convert", "namespace": "team"}}}}
	webhook := manifest.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "a"}
	newer := manifest.ID{Group: webhook.Group, Kind: webhook.Kind, Name: "b"}
	denied := errors.New(`admission webhook "x" denied the request`)
	cases := map[string]struct {
		reason string
		goes   Step
		other  Step
		err    error
		why    Code // "" if it is pruned
	}{
		"Created":       {"The object was renamed, and its replacement was created.", goes(from, "a.yaml"), create(to, "a.yaml"), nil, ""},
		"Refused":       {"The API server refused the replacement.", goes(from, "a.yaml"), create(to, "a.yaml"), no, NotReplaced},
		"Elsewhere":     {"The object was moved to another file and a misspelt namespace.", goes(from, "a.yaml"), create(elsewhere, "b.yaml"), no, NotReplaced},
		"OtherFile":     {"The file was renamed with the object, so the refused object may be its replacement.", goes(from, "a.yaml"), create(to, "b.yaml"), no, MayBeReplaced},
		"OtherKind":     {"A refused object of another kind in another file is not a replacement.", goes(from, "a.yaml"), create(user.ID, "b.yaml"), no, ""},
		"NoPath":        {"The inventory does not record the file that declared the object.", goes(from, ""), create(user.ID, "a.yaml"), no, ""},
		"Recreated":     {"The refused object existed before and a user deleted it, so it is not a replacement.", goes(from, "a.yaml"), again, no, ""},
		"Waiting":       {"The replacement has not been created yet.", goes(from, "a.yaml"), waiting, nil, AwaitsUnfinished},
		"Port":          {"The replacement needs the port of the object to be pruned.", goes(from, "a.yaml"), create(to, "a.yaml"), errors.New("provided port is already allocated"), ""},
		"Quota":         {"The replacement exceeds a quota until the object is pruned.", goes(from, "a.yaml"), create(to, "a.yaml"), errors.New("exceeded quota: few"), ""},
		"Denied":        {"A policy denied the name of the replacement.", goes(from, "a.yaml"), create(to, "a.yaml"), denied, NotReplaced},
		"DeniedForIt":   {"A webhook denies a second object with the same host.", goes(from, "a.yaml"), create(to, "a.yaml"), errors.New(`admission webhook "x" denied the request: the host is defined in team/a`), ""},
		"DeniedItself":  {"The error names the replacement, which has the same name in another namespace.", goes(from, "a.yaml"), create(elsewhere, "a.yaml"), errors.New(`configmaps "a" is forbidden`), NotReplaced},
		"Home":          {"An object in the namespace could not be deleted.", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, no, NamespaceNotEmpty},
		"OtherHome":     {"An object in another namespace could not be deleted.", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: elsewhere}, no, ""},
		"EmptiedHome":   {"All objects in the namespace were deleted.", Step{Action: Prune, ID: home}, Step{Action: Prune, ID: from}, nil, ""},
		"TakenBack":     {"The CRD of a deactivated definition is declared in no file.", Step{Action: Prune, ID: CRD("buckets.example.org"), Deactivates: true, Removal: Removal{path: "a.yaml"}}, create(to, "a.yaml"), no, ""},
		"UsedLive":      {"A Deployment whose update was refused still mounts the object.", goes(from, "a.yaml"), with(user, uses("a"), uses("b")), no, StillNamed},
		"UsedWanted":    {"A Deployment whose update was refused would mount the object.", goes(from, "a.yaml"), with(user, uses("b"), uses("a")), no, StillNamed},
		"UsedHost":      {"A field may contain the name of a Service as a host.", goes(manifest.ID{Kind: "Service", Namespace: "team", Name: "a-svc"}, ""), with(user, uses("a"), uses("b")), no, StillNamed},
		"Updated":       {"The Deployment was updated, and now mounts the other object.", goes(from, "a.yaml"), with(user, uses("a"), uses("b")), nil, ""},
		"UsedElsewhere": {"A name in another namespace refers to another object.", goes(from, "a.yaml"), with(far, uses("a"), uses("b")), no, ""},
		"DependsOn":     {"A depends-on annotation refers to an object in another namespace.", goes(from, "a.yaml"), with(far, annotated, uses("b")), no, StillNamed},
		"Label":         {"A value of a label is not a reference.", goes(manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "labelled"}, ""), with(user, uses("a"), uses("b")), no, ""},
		"Schema":        {"A description in a schema is not a reference.", goes(from, ""), with(crd, described, described), no, ""},
		"Converter":     {"A CRD refers to the Service of its conversion webhook.", goes(manifest.ID{Kind: "Service", Namespace: "team", Name: "convert"}, ""), with(crd, described, described), no, StillNamed},
		"Webhook":       {"The webhook itself may refuse the other object, so it is pruned.", goes(webhook, "a.yaml"), with(create(to, "a.yaml"), nil, uses("a")), no, ""},
		"WebhookItself": {"Webhooks do not check webhook configurations, so the old one stays until its replacement exists.", goes(webhook, "a.yaml"), create(newer, "b.yaml"), no, MayBeReplaced},
		"Freed":         {"The object is being deleted, and only the finalizer of Headgate delays it.", Step{Action: Prune, ID: from, going: true, Removal: Removal{path: "a.yaml", protected: true}}, create(to, "a.yaml"), no, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan{Steps: []Step{tc.other, tc.goes}}
			done := []Outcome{{ID: tc.other.ID, Action: tc.other.Action, Err: tc.err}}
			if tc.other.Waiting() {
				done = nil
			}
			s := Plan{Steps: []Step{tc.goes}}.withhold(p.Unfinished(done), func(Step) bool { return false }).Steps[0]
			why := Reason{}
			switch {
			case s.Err != nil:
				why = ReasonOf(s.Err)
			case s.Waiting():
				why = s.Waits[0]
			}
			if why.Code != tc.why {
				t.Errorf("%s\nit is kept for %q, want %q", tc.reason, why, tc.why)
			}
			p.Ends = Delete
			if why := p.Unfinished(done).Keeps(tc.goes); !why.None() {
				t.Errorf("a sync that ends waits for nothing: %s", why)
			}
		})
	}
}

// If the file of an object now declares another object of the same kind, and that was created, the object counts as replaced,
// whatever failed in other files.
func TestReplacedInItsFile(t *testing.T) {
	obj := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: name} }
	failed := Step{Action: Create, ID: obj("failed"), Origin: manifest.Origin{Path: "b.yaml", Line: 1}}
	made := Step{Action: Create, ID: obj("made"), Origin: manifest.Origin{Path: "a.yaml", Line: 1}}
	u := Plan{Steps: []Step{failed, made}}.Unfinished([]Outcome{{ID: failed.ID, Action: Create, Err: errors.New("no")}, {ID: made.ID, Action: Create}})
	for path, kept := range map[string]bool{"a.yaml": false, "c.yaml": true, "": true} {
		if why := u.Keeps(Step{Action: Prune, ID: obj("old"), Removal: Removal{path: path}}); why.None() == kept {
			t.Errorf("%q: it is kept for %q", path, why)
		}
	}
}
