package forge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Workflow is a run of a forge's CI, according to its environment.
type Workflow struct {
	Kind   Kind
	Server string // URL of the forge
	Name   string // name of the repository, as "owner/name"
	Pull   int    // the number of the pull request, or 0
	Base   string // the target of the pull request, in the notation of the clone
	Target string // the target of the pull request when the forge started the run; may be empty
	Head   string // the head of the pull request when the forge started the run; may be empty
	Token  string

	Run string // URL of the run's page

	Closed  bool   // the pull request was closed or merged, which started the run
	Queued  bool   // Head is the commit of a merge queue, for the pull request and those that are ahead of it
	Fork    bool   // the environment shows that the pull request comes from a fork
	Summary string // a file with Markdown for the run's page
}

// A pipeline describes the CI of a forge.
type pipeline struct {
	name  string // display name
	also  string // another product with the same environment
	token string // the variable for the user's token
	// read returns the run that an environment describes, and reports whether it is a run of this forge.
	read func(env func(string) string) (Workflow, bool)
}

// WorkflowOf returns the run that an environment describes. It returns the zero value outside of a run.
func WorkflowOf(env func(string) string) Workflow {
	for _, f := range forges {
		if f.pipeline.read == nil {
			continue
		}
		if w, ok := f.pipeline.read(env); ok {
			w.Kind, w.Token = f.Kind, cmp.Or(env(f.pipeline.token), w.Token)
			w.Target = strings.TrimPrefix(w.Target, "refs/heads/")
			return w
		}
	}
	return Workflow{}
}

// Pipelines returns the names of all CI systems that WorkflowOf supports, and the variables from which it reads a
// token. Both are sorted.
func Pipelines() (names, tokens []string) {
	for _, f := range forges {
		if f.pipeline.read == nil {
			continue
		}
		names, tokens = append(names, f.pipeline.name), append(tokens, f.pipeline.token)
		if f.pipeline.also != "" {
			names = append(names, f.pipeline.also)
		}
	}
	sortNames(names)
	slices.Sort(tokens)
	return names, tokens
}

func sortNames(names []string) {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

// pullNumber parses the number of a pull request. It returns 0 for any other text.
func pullNumber(s string) int {
	n, _ := strconv.Atoi(s)
	return max(n, 0)
}

// Superseded reports whether a pull request has a different head or target than when a run, or a repeated run, started.
// clone is the commit that the run has checked out, which it may have pushed itself.
func (w Workflow) Superseded(now Pull, clone string) bool {
	if w.Target != "" && w.Target != now.Target {
		return true
	}
	return w.Head != "" && !strings.HasPrefix(now.Head, w.Head) && now.Head != clone
}

// remoteBranch returns the name of a branch in a clone of its repository, or "".
func remoteBranch(branch string) string {
	if branch == "" {
		return ""
	}
	return "origin/" + strings.TrimPrefix(branch, "refs/heads/")
}
