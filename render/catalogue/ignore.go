package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// ignoreFile excludes files below its directory, in the syntax of .gitignore.
const ignoreFile = ".headgateignore"

// ignoring holds the patterns of the ignore files that a walk has found, in order. The last pattern that matches decides. The walk
// never matches paths below an ignored directory.
type ignoring []pattern

// A pattern is one line of an ignore file. Existing libraries match everything below a match, so their `!dir` keeps files that
// earlier lines exclude.
type pattern struct {
	dir           string   // the directory of the ignore file with a trailing slash; "" for the root
	steps         []string // parts for path.Match; "**" means any number of directories
	keep, dirOnly bool
}

// matches reports whether a file or directory of the commit is ignored.
func (i ignoring) matches(name string, isDir bool) bool {
	for _, p := range slices.Backward(i) {
		if p.matches(name, isDir) {
			return !p.keep
		}
	}
	return false
}

func (p pattern) matches(name string, isDir bool) bool {
	below, ok := strings.CutPrefix(name, p.dir)
	return ok && (isDir || !p.dirOnly) && matchSteps(p.steps, strings.Split(below, "/"))
}

// matchSteps backtracks only to the last "**". That is enough: it can match everything that an earlier "**" could match.
func matchSteps(steps, names []string) bool {
	s, n := 0, 0
	again, from := -1, 0
	for n < len(names) {
		switch {
		case s < len(steps) && steps[s] == anyDirectories:
			again, from = s, n
			s++
		case s < len(steps) && matchStep(steps[s], names[n]):
			s++
			n++
		case again >= 0:
			from++
			s, n = again+1, from
		default:
			return false
		}
	}
	return s == len(steps)
}

func matchStep(step, name string) bool {
	ok, err := path.Match(step, name)
	return ok && err == nil // stepOf has already validated the pattern
}

const anyDirectories = "**"

// patternOf parses a line of the ignore file of a directory. ok is false for a blank line or a comment.
func patternOf(line, dir string) (p pattern, ok bool, err error) {
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return p, false, nil
	}
	p.dir = dir
	line, p.keep = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false, errors.New("it names nothing")
	}
	if !strings.Contains(line, "/") { // anywhere below
		step, err := stepOf(line)
		if step == anyDirectories {
			step = "*"
		}
		p.steps = []string{anyDirectories, step}
		return p, true, err
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(line, "/"), "/") {
		step, err := stepOf(part)
		if err != nil {
			return p, false, err
		}
		p.steps = append(p.steps, step)
	}
	if p.steps[len(p.steps)-1] == anyDirectories {
		p.steps = append(p.steps, "*") // matches the content of the directory, but not the directory itself
	}
	return p, true, nil
}

// trimSpaces removes trailing spaces, except one that is escaped.
func trimSpaces(line string) string {
	short := strings.TrimRight(line, " ")
	if len(short) < len(line) && strings.HasSuffix(short, `\`) {
		short += " "
	}
	return short
}

// stepOf converts a part of a pattern for path.Match, which negates a class with a caret.
func stepOf(part string) (string, error) {
	var b strings.Builder
	class := false
	for i := 0; i < len(part); i++ {
		c := part[i]
		b.WriteByte(c)
		switch {
		case c == '\\' && i+1 < len(part):
			i++
			b.WriteByte(part[i])
		case class && c == '[' && strings.HasPrefix(part[i:], "[:"):
			return "", errors.New("classes as [:alpha:] are not supported")
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(part[i:], "[!") {
				i++
				b.WriteByte('^')
			}
		}
	}
	if _, err := path.Match(b.String(), ""); err != nil {
		return "", fmt.Errorf("%q cannot be understood", part)
	}
	return b.String(), nil
}

// mostPatterns limits the work: every name is compared with every pattern.
const mostPatterns = 10_000

// readIgnoreFile adds the ignore file of a directory, if it has one.
func (w *walk) readIgnoreFile(dir string) (ok bool) {
	name := path.Join(dir, ignoreFile)
	info, err := fs.Lstat(w.files, name)
	at := manifest.Origin{Path: name}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil:
		w.refuse(at, err)
		return false
	case !info.Mode().IsRegular():
		w.refuse(at, errors.New("is not a regular file, and Headgate follows no links: write the patterns here"))
		return false
	}
	content, err := w.reader.RecallBytes(name)
	if err != nil {
		w.problems = append(w.problems, Error{Origin: at, Err: err})
		return false
	}
	below := dir + "/"
	if dir == "." {
		below = ""
	}
	for line := range strings.SplitSeq(strings.TrimPrefix(string(content), "\uFEFF"), "\n") {
		at.Line++
		p, ok, err := patternOf(strings.TrimSuffix(line, "\r"), below)
		switch {
		case err != nil: // otherwise, the files to ignore would be applied
			w.refuse(at, fmt.Errorf("this is not a pattern: %w", err))
			return false
		case ok && len(w.ignored) == mostPatterns:
			w.refuse(at, fmt.Errorf("there are more than %d patterns", mostPatterns))
			return false
		case ok:
			w.ignored = append(w.ignored, p)
		}
	}
	return true
}

// skipIgnored skips a file or directory if it is ignored, and reports that.
func (w *walk) skipIgnored(name string, e fs.DirEntry) bool {
	switch {
	case !w.ignored.matches(name, e.IsDir()):
		return false
	case e.IsDir():
		w.skipAll(name, Ignored)
	default:
		w.skipFile(name, e, Ignored)
	}
	return true
}
