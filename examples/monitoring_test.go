package examples

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/crossplane/kinds"

	"sigs.k8s.io/yaml"
)

// An alert is a rule of monitoring/alerts.yaml.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	data, err := os.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil || len(file.Groups) == 0 {
		t.Fatalf("%d groups: %v", len(file.Groups), err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// Prometheus reads the rules, and every alert fires when it should, by its own evaluation.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"alerts.yaml", "alerts.test.yaml"} { // promtool reads them, and the test cache does not see that
		fixtures.DependOn(t, filepath.Join("monitoring", name))
	}
	fixtures.Promtool(t, "monitoring", "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	fixtures.Promtool(t, "monitoring", "test", "rules", "alerts.test.yaml")
	tests, err := os.ReadFile("monitoring/alerts.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		if !regexp.MustCompile(`(?m)^    alertname: ` + a.Alert + `$`).Match(tests) {
			t.Errorf("no test lets %s fire", a.Alert)
		}
	}
}

// Every alert has a class, and a heading of the page Operate. It reads only metrics that Headgate has.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("operate/README.md")
	if err != nil {
		t.Fatal(err)
	}
	has := exported(t)
	used := map[string]bool{}
	for _, a := range alerts(t) {
		if class := a.Labels["severity"]; class != "page" && class != "ticket" {
			t.Errorf("%s: the severity %q is neither page nor ticket", a.Alert, class)
		}
		if want := "https://headgate.dev/operations/operate#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(string(page), "\n### "+a.Alert+"\n") {
			t.Errorf("operate/README.md has no heading %s", a.Alert)
		}
		for _, name := range regexp.MustCompile(`headgate_[a-z_]+`).FindAllString(a.Expr, -1) {
			used[name] = true
			if !slices.Contains(has, name) {
				t.Errorf("%s reads %s, and Headgate exports only %q", a.Alert, name, has)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Headgate\w+)$`).FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(alerts(t), func(a alert) bool { return a.Alert == m[1] }) {
			t.Errorf("operate/README.md explains %s, and there is no such alert", m[1])
		}
	}
	for _, name := range has {
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count"); !strings.Contains(string(page), "`"+base+"`") && !strings.Contains(string(page), "`"+base+"{") {
			t.Errorf("operate/README.md does not list %s", base)
		}
	}
}

// The dashboard reads only metrics that Headgate has, and shows all of them.
func TestDashboard(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string `json:"uid"`
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(data, &dashboard); err != nil || dashboard.UID == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(dashboard.Panels), err)
	}
	has := exported(t)
	var shown []string
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			fixtures.Promtool(t, "monitoring", "promql", "format", "--experimental", target.Expr)
			names := regexp.MustCompile(`headgate_[a-z_]+`).FindAllString(target.Expr, -1)
			for _, name := range names {
				if !slices.Contains(has, name) {
					t.Errorf("%s reads %s, and Headgate exports only %q", p.Title, name, has)
				}
			}
			shown = append(shown, names...)
		}
	}
	for _, name := range has {
		if strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") { // of a histogram, whose buckets are shown
			continue
		}
		if !slices.Contains(shown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// exported returns the names of Headgate's own metrics once everything has happened.
func exported(t *testing.T) []string {
	t.Helper()
	m := metrics.New()
	of := inventory.Sync{Namespace: "headgate-system", Name: "platform"}
	m.Add(of.Namespace, of.Name, func() int { return 0 })
	m.Suspend(of.Namespace, of.Name, time.Unix(1, 0))
	m.Stall("team", "stalled", "AboveCeiling")
	m.Add("team", "gone", nil)
	m.Passed(report.Report{Sync: inventory.Sync{Namespace: "team", Name: "gone"}, Summary: report.Summary{Created: 1}}, time.Second)
	m.Remove("team", "gone")
	m.Passed(report.Report{Sync: of, Definitions: []report.Definition{{}}, Steps: []report.Step{{Action: plan.Hold, Guard: "schema"}}}, time.Second)
	m.Previewed(time.Second)
	m.Requested("GET")
	m.Cache(func() int64 { return 1 })
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	all := regexp.MustCompile(`(?m)^headgate_[a-z_]+`).FindAllString(w.Body.String(), -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// The page names the versions that the tests run.
func TestSupportIsTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../.site/support.md")
	if err != nil {
		t.Fatal(err)
	}
	for server, module := range map[string]string{
		"kubernetes": "k8s.io/kubernetes", "crossplane": "github.com/crossplane/crossplane/v2", "provider": "github.com/crossplane-contrib/provider-kubernetes", "flux": "github.com/fluxcd/kustomize-controller", "source": "github.com/fluxcd/source-controller", "gitea": "code.gitea.io/gitea",
	} {
		mod, err := os.ReadFile(filepath.Join("..", "fixtures", "server", server, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)\b` + regexp.QuoteMeta(module) + ` (v[0-9.]+)`).FindSubmatch(mod)
		if m == nil || !bytes.Contains(page, m[1]) {
			t.Errorf(".site/support.md does not name %s %s", module, m)
		}
	}
	releases := kinds.Releases()
	if crds := "releases " + releases[0] + " to " + releases[len(releases)-1]; !bytes.Contains(page, []byte(crds)) {
		t.Errorf(".site/support.md does not name the %s", crds)
	}
}
