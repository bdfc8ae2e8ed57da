package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// A build identifies this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a work tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(t *terminal) *cobra.Command {
	format := oneOf("text", "json")
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the version",
		Args:  takes(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if format.value == "json" {
				return t.json(b)
			}
			_, err := fmt.Fprintln(t.out, b)
			return err
		},
	}
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
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
