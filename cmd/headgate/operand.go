package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

// This file decides what an argument in the place of a directory, a commit or a repository means, and words the advice for one that
// means something else.

var (
	syncKind = regexp.MustCompile(`(?m)^apiVersion:\s*["']?headgate\.dev/`)
	dotted   = regexp.MustCompile(`^(.+?)(\.\.\.?)(.+)$`)                                                                       // base..head
	inTree   = regexp.MustCompile(`^([\w./@^~-]+):([\w./-]+)$`)                                                                 // commit:path
	hosted   = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}(:\d+)?/[\w.~-]+/.+`)                                   // github.com/owner/name
	short    = regexp.MustCompile(`^[\w-]+/[\w.-]+$`)                                                                           // owner/name
	webPage  = regexp.MustCompile(`^(https?://[^/]+/.+?)/(?:-/)?(?:tree|blob|src(?:/branch|/tag|/commit)?)/([^/]+)(?:/(.*))?$`) // of a forge
)

// isDirectory returns an error with advice if there is no such directory.
func isDirectory(verb, name string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return notADirectory(verb, name)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read directory %s: %w", name, pathless(err))
	}
	if advice := insteadOfDirectory(verb, name); advice != "" {
		return usagef("there is no directory %s%s", name, advice)
	}
	if near := nearestEntry(name, true); near != "" {
		return fmt.Errorf("cannot read directory %s: no such file or directory; did you mean %s?", name, near)
	}
	return fmt.Errorf("cannot read directory %s: no such file or directory", name)
}

// notADirectory returns the error for a file in the place of a directory.
func notADirectory(verb, name string) error {
	if isSyncFile(name) {
		return usagef("%s is a file of Syncs: name it with -f, as in 'headgate %s -f %[1]s'", name, verb)
	}
	return fmt.Errorf("cannot read directory %s: it is a file; name the directory that it is in, such as %s", name, filepath.Dir(name))
}

// isSyncFile reports whether a file holds Syncs, valid or not.
func isSyncFile(name string) bool {
	data, err := os.ReadFile(name)
	return err == nil && syncKind.Match(data)
}

// insteadOfDirectory returns the advice for a name that is not a directory, or "".
func insteadOfDirectory(verb, name string) string {
	switch m := dotted.FindStringSubmatch(name); {
	case name == "help":
		return fmt.Sprintf("; 'headgate %s --help' describes the command", verb)
	case name == "-":
		return "; a commit is a directory or a Git repository, and not standard input"
	case hosted.MatchString(name):
		return "; name a repository with its URL: --repo https://" + name
	case m != nil && m[2] == ".." && m[1] != "." && isCommit(m[1]):
		return fmt.Sprintf("; two commits are two arguments: 'headgate diff %s %s'", m[1], m[3])
	case m != nil && m[2] == "..." && isCommit(m[1]):
		return fmt.Sprintf("; 'headgate preview --base %s --head %s' compares with the merge base", m[1], m[3])
	}
	if m := inTree.FindStringSubmatch(name); m != nil && isCommit(m[1]) {
		return fmt.Sprintf("; write --ref %s --path %s", m[1], m[2])
	}
	if isCommit(name) {
		return fmt.Sprintf(", but a branch, tag or commit: write --ref %s to read it, or 'headgate diff %[1]s HEAD' to compare it with what is checked out", name)
	}
	return ""
}

// nearestEntry returns the entry beside a missing one whose name differs by a typing error, or "".
func nearestEntry(name string, directory bool) string {
	parent := filepath.Dir(filepath.Clean(name))
	entries, err := os.ReadDir(parent)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() == directory {
			names = append(names, e.Name())
		}
	}
	if near := misspelt(filepath.Base(name), names); near != "" {
		return filepath.Join(parent, near)
	}
	return ""
}

// pathless returns the cause of an error about a path, without the path.
func pathless(err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// readFile reads the file of a flag.
func readFile(flag, name string) ([]byte, error) {
	if err := isFile(name); err != nil {
		return nil, usagef("--%s %s: %w", flag, name, err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("--%s %s: %w", flag, name, pathless(err))
	}
	return data, nil
}

// isFile returns an error if no file has this name.
func isFile(name string) error {
	info, err := os.Stat(name)
	switch {
	case name == "":
		return errors.New("name a file")
	case err == nil && info.IsDir():
		return errors.New("it is a directory; name a file")
	case err == nil:
		return nil
	}
	if near := nearestEntry(name, false); near != "" {
		return fmt.Errorf("%w; did you mean %s?", pathless(err), near)
	}
	return pathless(err)
}

// A side is one of the two arguments of a comparison.
type side struct {
	name      string
	directory bool
}

// sidesOf returns what the two arguments of a comparison are. Without --repo, a name that is written as a path is a directory, and so
// is the name of a directory that no commit has.
func sidesOf(repo string, args []string) (sides [2]side, err error) {
	for i, name := range args {
		switch advice := insteadOfCommit(name); {
		case advice != "":
			return sides, usagef("%s is no commit; %s", name, advice)
		case repo == "":
			sides[i] = side{name, isPath(name) || isExistingDirectory(name) && !isCommit(name)}
		default:
			sides[i] = side{name, isPath(name)}
		}
	}
	return sides, nil
}

// insteadOfCommit returns the advice for an argument of a comparison that no commit can have, or "".
func insteadOfCommit(name string) string {
	if m := dotted.FindStringSubmatch(name); m != nil && !isPath(name) {
		return fmt.Sprintf("two commits are two arguments: 'headgate diff %s %s'", m[1], m[3])
	}
	if m := inTree.FindStringSubmatch(name); m != nil {
		return fmt.Sprintf("write the commit %s, and --path %s for both commits", m[1], m[2])
	}
	return ""
}

func isExistingDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// checkRepository rejects a value of --repo that is no repository: a password in a URL would be visible in the process list and in the
// shell's history.
func checkRepository(repo string) error {
	if url := v1alpha1.SSHURL(repo); url != "" {
		return usagef("--repo is in the short form of ssh; write --repo %s", url)
	}
	if !isURL(repo) {
		return checkPath(repo)
	}
	u, err := url.Parse(repo)
	if err != nil {
		return usagef("--repo is not a URL") // the error of url.Parse quotes the whole URL
	}
	if u.User != nil && u.Scheme != "ssh" { // a token may be in place of the user
		return usagef("--repo holds credentials; put the password or token into HEADGATE_GIT_PASSWORD, and the user into HEADGATE_GIT_USERNAME")
	}
	if m := webPage.FindStringSubmatch(repo); m != nil {
		return usagef("--repo is a page of a forge; write --repo %s --ref %s%s", m[1], m[2], pathFlag(m[3]))
	}
	return nil
}

func pathFlag(path string) string {
	if path == "" {
		return ""
	}
	return " --path " + path
}

// checkPath rejects a path to a repository that does not exist, if the user may mean something else.
func checkPath(repo string) error {
	info, err := os.Stat(repo)
	switch {
	case err == nil && !info.IsDir():
		return usagef("--repo %s is a file; name the directory of a repository, or a URL", repo)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return nil
	case hosted.MatchString(repo):
		return usagef("--repo: there is no directory %s; write the URL https://%[1]s", repo)
	case short.MatchString(repo):
		return usagef("--repo: there is no directory %s; for a repository on a forge, write its URL, such as https://github.com/%[1]s", repo)
	}
	return nil
}

// takes returns the check of the number of arguments of a verb. instead tells what the user may want if there are too many.
func takes(least, most int, instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		switch {
		case len(args) < least:
			return usagef("%s needs more arguments: %s", cmd.Name(), usage)
		case len(args) <= most:
			return nil
		}
		extra := args[most]
		if isSyncFile(extra) && cmd.Flags().Lookup("file") != nil {
			return usagef("%s is a file of Syncs: name it with -f, as in 'headgate %s -f %[1]s'", extra, cmd.Name())
		}
		what := "no argument"
		if most > 0 {
			what = "at most " + manifest.Count(most, "argument")
		}
		if instead != "" {
			instead = "; " + instead
		}
		return usagef("%s takes %s, and %q is one more: %s%s", cmd.Name(), what, extra, usage, instead)
	}
}

// overHTTPS returns the URL of a repository that is written without its scheme, or the word for one.
func overHTTPS(name string) string {
	if hosted.MatchString(name) {
		return "https://" + name
	}
	return "URL"
}
