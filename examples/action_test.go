package examples

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/release"
)

const (
	ownAction   = "headgate-dev/headgate/examples/github-actions"
	actionFile  = "github-actions/action.yaml"
	gitLabFile  = "gitlab-ci/templates/headgate.yml"
	includeFile = "gitlab-ci/.gitlab-ci.yml"
)

var pin = flag.Bool("pin", false, "pin the newest commit of the action and the template in the examples")

// readAction returns the inputs of Headgate's action and its steps. The given inputs replace the defaults.
func readAction(t *testing.T, with map[string]string) (map[string]string, []step) {
	t.Helper()
	data, err := os.ReadFile(actionFile)
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Inputs map[string]struct{ Description, Default string }
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{}
	for name, input := range head.Inputs {
		inputs[name] = input.Default
	}
	for name, value := range with {
		if _, has := inputs[name]; !has {
			t.Fatalf("the action has no input %s", name)
		}
		inputs[name] = value
	}
	text := string(data)
	for name, value := range inputs {
		text = strings.ReplaceAll(text, "${{ inputs."+name+" }}", value)
	}
	var action struct {
		Name, Description string
		Inputs            map[string]any
		Runs              struct {
			Using string
			Steps []struct {
				step `yaml:",inline"`

				If, Shell string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&action); err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, s := range action.Runs.Steps {
		if s.Run != "" && s.Shell != "bash" {
			t.Errorf("step %s needs a shell", s.Name)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %s gives an expression to a shell", s.Name)
		}
		steps = append(steps, s.step)
	}
	return inputs, steps
}

// serveRelease serves a release of this tree for this machine as v0.1.0, and returns its URL and the directory with its files. The
// signature is not one of cosign: only the workflow has the identity to make one. A cosign that checks the stand-in is in tools.
func serveRelease(t *testing.T) (url, files, tools string) {
	t.Helper()
	fixtures.Headgate(t) // the test depends on the program
	config, err := release.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, tools = filepath.Join(dir, "v0.1.0"), filepath.Join(dir, "tools")
	for _, d := range []string{files, tools} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	commit := release.Commit{Root: "..", Version: "0.1.0", Hash: strings.Repeat("ab", 20), Time: time.Unix(1_790_000_000, 0)}
	if err := config.Prepare(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.Make(t.Context(), commit, []release.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, files); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(files, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(files, "checksums.txt.sigstore.json"), fmt.Sprintf("%x", sha256.Sum256(sums)))
	write(t, filepath.Join(tools, "cosign"), `#!/bin/sh
want="verify-blob --bundle checksums.txt.sigstore.json --certificate-oidc-issuer https://token.actions.githubusercontent.com"
want="$want --certificate-identity https://github.com/headgate-dev/headgate/.github/workflows/release.yaml@refs/tags/v0.1.0 checksums.txt"
test "$*" = "$want" || { echo "cosign $*" >&2; exit 2; }
test "$(sha256sum < checksums.txt)" = "$(cat checksums.txt.sigstore.json)  -" || { echo "cosign: no signature of checksums.txt" >&2; exit 1; }
`)
	t.Log("not run here: the verification of a signature of cosign")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL, files, tools
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// action runs the steps of Headgate's action one after another, as a forge does, and returns their output.
func action(t *testing.T, tools string, with map[string]string) (string, error) {
	t.Helper()
	temp := t.TempDir()
	_, steps := readAction(t, with)
	env := map[string]string{"PATH": tools + ":" + os.Getenv("PATH"), "HOME": temp, "RUNNER_TEMP": temp, "GITHUB_PATH": filepath.Join(temp, "path"), "GITHUB_ENV": filepath.Join(temp, "env")}
	var all bytes.Buffer
	for _, s := range steps {
		if s.Run == "" {
			if !pinned(s.Uses, "actions/cache") {
				t.Errorf("the action uses %s", s.Uses)
			}
			continue
		}
		run := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		run.Dir = temp
		own := maps.Clone(env)
		for key, value := range s.Env {
			own[key] = strings.NewReplacer("${{ runner.temp }}", temp, "${{ github.token }}", "workflow-token").Replace(value)
		}
		for key, value := range own {
			run.Env = append(run.Env, key+"="+value)
		}
		out, err := run.CombinedOutput()
		all.Write(out)
		if err != nil {
			return all.String(), fmt.Errorf("step %s: %w", s.Name, err)
		}
		if paths, err := os.ReadFile(env["GITHUB_PATH"]); err == nil {
			env["PATH"] = strings.TrimSpace(string(paths)) + ":" + tools + ":" + os.Getenv("PATH")
		}
	}
	return all.String(), nil
}

// The action installs only what the release workflow signed, and runs exactly what it is given.
func TestAction(t *testing.T) {
	url, files, tools := serveRelease(t)
	archive := fmt.Sprintf("headgate_0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	cases := map[string]struct {
		reason   string
		with     map[string]string
		tampered string // a file of the release that another hand changed
		by       string // its content
		want     string // in the output
		fails    string // the step that fails
	}{
		"Installed": {
			reason: "Without arguments, later steps run the program.",
			want:   "headgate v0.1.0 abababababab go1.",
		},
		"Run": {
			reason: "The program of the archive runs.",
			with:   map[string]string{"args": "version -o json"},
			want:   `"version": "v0.1.0"`,
		},
		"NothingIsExpanded": {
			reason: "A name from a pull request may be in the arguments.",
			with:   map[string]string{"args": "completion $(id)"},
			want:   `'headgate completion --help'`,
			fails:  "Run",
		},
		"OtherArchive": {
			reason:   "Its checksum is another.",
			tampered: archive, by: "something else",
			want: "FAILED", fails: "Install",
		},
		"OtherChecksums": {
			reason:   "Whoever replaces an archive can replace its checksum, and not the signature.",
			tampered: "checksums.txt", by: strings.Repeat("0", 64) + "  " + archive + "\n",
			want: "no signature of checksums.txt", fails: "Install",
		},
		"NoSuchVersion": {
			reason: "A release that does not exist is no success.",
			with:   map[string]string{"version": "v9.9.9"},
			want:   "404", fails: "Install",
		},
		"NoVersion": {
			reason: "A branch is no release.",
			with:   map[string]string{"version": "main"},
			want:   "version main is no version such as v1.2.3", fails: "Install",
		},
		"PathAsVersion": {
			reason: "A version must not lead elsewhere.",
			with:   map[string]string{"version": "v0.1.0/../v0.1.0"},
			want:   "is no version such as v1.2.3", fails: "Install",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.tampered != "" {
				file := filepath.Join(files, tc.tampered)
				before, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				write(t, file, tc.by)
				defer write(t, file, string(before))
			}
			with := map[string]string{"releases": url}
			maps.Copy(with, tc.with)
			out, err := action(t, tools, with)
			if failed := err != nil; failed != (tc.fails != "") || failed && !strings.Contains(err.Error(), "step "+tc.fails+":") {
				t.Errorf("%s\nthe error is %v, want one of step %q\n%s", tc.reason, err, tc.fails, out)
			}
			if !strings.Contains(out, tc.want) {
				t.Errorf("%s\nno %q in:\n%s", tc.reason, tc.want, out)
			}
		})
	}
	t.Run("GitLab", func(t *testing.T) { gitLabInstalls(t, url, tools) })
}

// gitLabInstalls runs the before_script of pipelines on GitLab, which is the script of the action.
func gitLabInstalls(t *testing.T, url, tools string) {
	t.Helper()
	_, steps := readAction(t, nil)
	jobs := readPipeline(t, map[string]string{"releases": url})
	before := strings.Join(jobs[".headgate"].Before, "\n")
	if !strings.Contains(before, "INSTALL'\n"+steps[0].Run+"INSTALL\n") {
		t.Errorf("the scripts differ:\n%s\n%s", steps[0].Run, before)
	}
	temp := t.TempDir()
	run := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", strings.ReplaceAll(before, "/tmp/headgate", temp)+"\nheadgate version")
	run.Env = []string{"PATH=" + tools + ":" + os.Getenv("PATH"), "HOME=" + temp}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "headgate v0.1.0 abababababab go1.") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Every example uses one commit of the action and of the template, whose digest GitLab verifies. `make release-dry` compares that
// commit with this tree. With -pin, the newest commit of both files is taken.
func TestPins(t *testing.T) {
	at := regexp.MustCompile(`(headgate-dev/headgate/examples/github-actions@|headgate-dev/headgate/)([0-9a-f]{40})`)
	template, err := os.ReadFile(gitLabFile)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(template)
	integrity := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	commits := map[string][]string{}
	for _, file := range []string{"github-actions/headgate.yaml", "gitea-actions/headgate.yaml", "renovate/headgate.yaml", includeFile} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if *pin {
			newest, err := exec.Command("git", "log", "-1", "--format=%H", "--", actionFile, gitLabFile).Output()
			if err != nil {
				t.Fatal(err)
			}
			text = at.ReplaceAllString(text, "${1}"+strings.TrimSpace(string(newest)))
			text = regexp.MustCompile(`sha256-\S{44}`).ReplaceAllString(text, integrity)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found := at.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s pins nothing", file)
		}
		for _, m := range found {
			commits[m[2]] = append(commits[m[2]], file)
		}
		if file == includeFile && !strings.Contains(text, "integrity: "+integrity) {
			t.Errorf("%s: the template has the digest %s; go test -run TestPins -pin writes it", file, integrity)
		}
	}
	if len(commits) != 1 {
		t.Errorf("the examples use several commits: %v", commits)
	}
}
