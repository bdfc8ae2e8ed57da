package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	known "headgate.dev/headgate/render/crossplane/kinds" // kinds is a function here

	"github.com/spf13/cobra"
)

// The linker sets these for a release: -ldflags "-X main.version=v1.2.3". Other builds take them from the repository, if Go
// recorded it.
var version, revision, committed string

// A build identifies this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // built from a work tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// A release describes this program and what it can read and write.
type release struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	build
	Crossplane []string `json:"crossplane"` // the releases whose rules it knows, oldest first; also their later patches
	Formats    formats  `json:"formats"`
}

// formats are the versions of the files and objects that programs and other versions of Headgate read.
type formats struct {
	Sync      []string `json:"sync"`
	Report    string   `json:"report"`    // the apiVersion of every JSON output
	Inventory int      `json:"inventory"` // the newest; older ones are read, too
}

func thisRelease() release {
	return release{
		APIVersion: report.APIVersion, Kind: "Version", build: thisBuild(), Crossplane: known.Releases(),
		Formats: formats{Sync: []string{v1alpha1.GroupVersion.String()}, Report: report.APIVersion, Inventory: inventory.Format},
	}
}

func newVersion(t *terminal) *cobra.Command {
	format := oneOf("text", "json")
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the version, the supported releases of Crossplane, and the formats",
		Args:  takes(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			r := thisRelease()
			if format.value == "json" {
				return t.json(r)
			}
			_, err := fmt.Fprint(t.out, r.text())
			return err
		},
	}
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

func (r release) text() string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-11s%s\n", name, cmp.Or(value, "unknown")) }
	fmt.Fprintln(&b, r.build)
	row("commit", r.Commit)
	row("date", r.Date)
	row("crossplane", r.Crossplane[0]+" to "+r.Crossplane[len(r.Crossplane)-1])
	row("sync", strings.Join(r.Formats.Sync, ", "))
	row("report", r.Formats.Report)
	row("inventory", fmt.Sprint(r.Formats.Inventory))
	return b.String()
}

func thisBuild() build {
	b := build{Version: version, Commit: revision, Date: committed, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := "headgate " + b.Version
	if b.Commit != "" {
		s += " " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Modified {
		s += " (modified)"
	}
	return s + " " + b.Go + " " + b.Platform
}

// commandName returns what a user types to start this program: kubectl starts kubectl-headgate as "kubectl headgate".
func commandName(path string) string {
	if strings.TrimSuffix(filepath.Base(path), ".exe") == "kubectl-headgate" {
		return "kubectl headgate"
	}
	return "headgate"
}

// thisProgram returns an identifier of this program, because another build may render a file differently.
func thisProgram() string {
	id := thisBuild().String()
	path, err := os.Executable()
	if err != nil {
		return id
	}
	if info, err := os.Stat(path); err == nil { // development builds may have the same version
		id += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return id
}
