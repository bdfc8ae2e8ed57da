package health

import (
	"context"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("apiVersion: example.org/v1\nkind: Database\n" + text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// An object has the status whose expression is true first; until then, it is in progress.
func TestCompute(t *testing.T) {
	ready := v1alpha1.HealthCheck{
		APIVersion: "example.org/v1", Kind: "Database",
		InProgress: "has(status.conditions) && status.conditions.exists(c, c.type == 'Busy' && c.status == 'True')",
		Failed:     "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'False' && c.reason == 'Broken')",
		Current:    "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True') && status.replicas >= 3 && status.?phase.orValue('Up') in ['Up', 'Idle']",
	}
	for name, tc := range map[string]struct {
		reason, text, is, message string
	}{
		"Current":    {"It is as the expression says.", "status: {replicas: 3, conditions: [{type: Ready, status: 'True'}]}", "Current", "current is true"},
		"Optional":   {"A field may be missing.", "status: {replicas: 3, phase: Down, conditions: [{type: Ready, status: 'True'}]}", "InProgress", "spec.healthCheckExprs[0].current is not true"},
		"Failed":     {"It does not become ready.", "status: {replicas: 3, conditions: [{type: Ready, status: 'False', reason: Broken}]}", "Failed", "failed is true"},
		"InProgress": {"The first expression counts.", "status: {replicas: 3, conditions: [{type: Busy, status: 'True'}, {type: Ready, status: 'True'}]}", "InProgress", "inProgress is true"},
		"Neither":    {"No expression is true.", "status: {replicas: 2, conditions: [{type: Ready, status: 'True'}]}", "InProgress", "current is not true"},
		"Missing":    {"A controller has not written the status yet.", "spec: {}", "InProgress", "no such attribute"},
		"NoKey":      {"The same for a field of it.", "status: {}", "InProgress", "no such key: conditions"},
		"Observed":   {"The status is of an earlier generation.", "metadata: {generation: 2}\nstatus: {observedGeneration: 1, replicas: 3, conditions: [{type: Ready, status: 'True'}]}", "InProgress", "earlier generation"},
	} {
		c, err := Compile([]v1alpha1.HealthCheck{ready})
		if err != nil {
			t.Fatal(err)
		}
		got := c.Compute(context.Background(), object(t, tc.text))
		if got.Status.String() != tc.is || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s: %s\nCompute() = %s: %s, want %s: …%s", name, tc.reason, got.Status, got.Message, tc.is, tc.message)
		}
	}
}

// A check without a kind is for all kinds of the group that have none of their own, in every version.
func TestHas(t *testing.T) {
	c, err := Compile([]v1alpha1.HealthCheck{
		{APIVersion: "example.org/v1beta1", Kind: "Database", Current: "status.ready"}, {APIVersion: "group.org/v1", Current: "false"}, {APIVersion: "group.org/v1", Kind: "One", Current: "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "example.org", Kind: "Database"}: true, {Group: "example.org", Kind: "Cache"}: false, {Group: "group.org", Kind: "Any"}: true, {Kind: "Database"}: false,
	} {
		if got := c.Has(kind); got != want {
			t.Errorf("Has(%s) = %t", kind, got)
		}
	}
	of := func(kind string) status.Status {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "group.org/v2", "kind": kind}}
		return c.Compute(context.Background(), u).Status
	}
	if of("One") != status.CurrentStatus || of("Two") != status.InProgressStatus {
		t.Errorf("One is %s and Two is %s", of("One"), of("Two"))
	}
	if got := c.Compute(context.Background(), object(t, "status: {ready: 'yes'}")); !strings.Contains(got.Message, "is string, and neither true nor false") {
		t.Errorf("for text, the message is %q", got.Message)
	}
}

// An error names the field and the place. What could take the memory or the time of the process is refused.
func TestCompile(t *testing.T) {
	for text, want := range map[string]string{
		"status.":                                   "column 8: Syntax error",
		"status.conditions.map(c, c.type) == []":    "the function map is not supported",
		"data.a.matches('a*')":                      "the function matches is not supported",
		"data.a.replace('', data.a) == ''":          "the function replace is not supported",
		"[data.a].join('') == ''":                   "a list may contain only constants",
		"['a', 'b'].join(data.a) == ''":             "the function join is not supported",
		"'%s'.format([1]) == ''":                    "the function format is not supported",
		"{'a': data}.size() == 1":                   "cannot contain a map",
		"unknown(status)":                           "the function unknown is not supported",
		"[[1, data]].size() == 1":                   "a list may contain only constants",
		"'' == data.a" + strings.Repeat("+'a'", 11): "has 11 additions",
		"data.filter(c, [c].size() == 1) == []":     "a list may contain only constants",
		"status.all(c)":                             "all needs a variable and a condition",
	} {
		_, err := Compile([]v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Current: "true"}, {APIVersion: "v1", Kind: "Pod", Current: "true", Failed: text}})
		if err == nil || !strings.HasPrefix(err.Error(), "spec.healthCheckExprs[1].failed: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q) = %v, want …%s", text, err, want)
		}
	}
}

// An expression stops after a number of steps, and when its context ends.
func TestHostile(t *testing.T) {
	list := make([]any, 100)
	for i := range list {
		list[i] = int64(i)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": list}}
	const text = "data.all(a, data.all(b, data.all(c, a + b + c >= 0)))"
	c, err := Compile([]v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Current: text}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Compute(t.Context(), u); got.Status != status.InProgressStatus || !strings.Contains(got.Message, "cost limit exceeded") {
		t.Errorf("without an end: %s: %s", got.Status, got.Message)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := c.Compute(ended, u); got.Status != status.InProgressStatus || !strings.Contains(got.Message, "interrupted") {
		t.Errorf("after the end: %s: %s", got.Status, got.Message)
	}
}

// A call costs what it reads. The values of an object may be as large as etcd allows, so that each of these would take minutes.
func TestCostOfLargeValues(t *testing.T) {
	large := strings.Repeat("a,", 500_000)
	words := make([]any, 2000)
	for i := range words {
		words[i] = large[:300]
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "large": large, "few": words[:100], "nested": []any{words}, "fields": map[string]any{"a": words}}}
	for _, text := range []string{
		"few.all(a, large.upperAscii() != 'a')",
		"few.all(a, size(large.split(',')) > 0)",
		"few.all(a, size(large + large) > 0)",
		"few.all(a, !large.contains('b'))",
		"few.all(a, nested == nested)",
		"few.all(a, fields == fields)",
		"few.all(a, !(fields in [1]) || true)",
	} {
		c, err := Compile([]v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Current: text}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Compute(t.Context(), u); !strings.Contains(got.Message, "cost limit exceeded") {
			t.Errorf("%s: %s: %s", text, got.Status, got.Message)
		}
	}
}

// The message about a Secret has nothing of it.
func TestSecret(t *testing.T) {
	c, err := Compile([]v1alpha1.HealthCheck{{APIVersion: "v1", Current: "data[data.password]"}})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]bool{"Secret": false, "ConfigMap": true} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "data": map[string]any{"password": "hunter2"}}}
		if got := c.Compute(t.Context(), u); strings.Contains(got.Message, "hunter2") != want {
			t.Errorf("%s: %s", kind, got.Message)
		}
	}
}

// Whatever the text is, it is refused or it ends.
func FuzzCompile(f *testing.F) {
	f.Add("status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')")
	f.Add("has(status.?phase) && size(data.a.split(',')) > 2 ? true : !false")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("a,", 1000)}}}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Compile([]v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Current: text}})
		if err != nil || text == "" {
			return
		}
		if got := c.Compute(t.Context(), u); got.Status != status.CurrentStatus && got.Status != status.InProgressStatus {
			t.Errorf("%q: %s", text, got.Status)
		}
	})
}
