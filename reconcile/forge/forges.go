package forge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"headgate.dev/headgate/reconcile/report"
)

// A Kind identifies a kind of forge by its API. Its values are those of --forge.
type Kind string

// forges lists every kind of forge. To add one, write its file, and add it here, to the options of package target and
// to the API. The first one that recognizes a webhook or a pipeline wins. So a forge that imitates another precedes
// it, and a forge whose webhooks have only a common header comes last.
var forges = []Forge{gitLabForge, dataCenterForge, bitbucketForge, giteaForge, gitHubForge, azureForge}

// A Forge describes one kind of forge completely. The zero value of every function and rule is the behaviour of most forges.
type Forge struct {
	Kind Kind
	Name string // display name
	Also string // another product with the same API, or empty

	TokenHelp   string // a sentence on how to write its tokens, or empty
	WebhookHelp string // a sentence on the secrets of its webhooks, or empty

	// Annotate writes the findings of a report in the format that the forge shows next to the lines of the commit. It
	// is nil if the forge has no such format.
	Annotate func(w io.Writer, r report.Report) error

	addresses
	pipeline pipeline
	webhook  webhook
	dialect  report.Dialect // the Markdown of comments

	// authorization returns the Authorization header for a token. If it is nil, the token is a bearer token.
	authorization func(token string) string
	// appToken returns a function that gets tokens of an App. It is nil if the forge has no Apps. appUser is the user
	// name that Git sends with such a token.
	appToken func(a App, of Repository, api string, transport http.RoundTripper) func(context.Context) (string, error)
	appUser  string

	// open returns a client of the API. The URL of the API ends in a slash.
	open func(at Repository, api string, client *http.Client) (client, error)
	// listed is set if an ordinary token cannot read who has write access, so that the client is not a writerAPI.
	// Then only users whom the configuration lists count, and reviews do not count.
	listed bool
	// mergeRef is the ref of the commit that merges a pull request into its target, with %d for the number. It is
	// empty if the forge makes no such commit.
	mergeRef string
	// filePath returns the URL path of a line in a file of a commit, relative to the page of the repository. Its
	// argument is already escaped.
	filePath func(commit, path string, line int) string
	// commentPath is the URL path of a comment, relative to the page of the repository, with %[1]d for the number of
	// the pull request and %[2]d for the ID of the comment.
	commentPath string
	// CIFile is the path of a file in a repository from which the forge reads its pipelines. It is empty if there is no example for it.
	CIFile string
}

// addresses describe the URLs of a forge.
type addresses struct {
	public   func(host string) bool   // reports whether a host is the public service of this forge
	labels   []string                 // first labels of host names that identify the forge, as in gitea.example.org
	suggests func(path []string) bool // reports whether only this forge uses such a path
	aliases  map[string]alias         // further hosts of the public service

	apiPath   string // path of the API below the URL of the forge
	publicAPI string // path of the API on api.HOST for the public service; empty if the API is on HOST

	// split divides the path of a repository below base into the part of the forge and the owner. The last segment is
	// the name. It may change base. If it is nil, the owner is one segment.
	split func(base *url.URL, path []string) (below, owner []string)
	// segment matches an owner, a name, and, if nested is set, each segment of an owner. nil matches letters, digits,
	// '.', '_' and '-'.
	segment *regexp.Regexp
	nested  bool
	// page returns the URL of a repository's web page on the forge at base. nil means BASE/OWNER/NAME.
	page func(base string, r Repository) string
}

// An alias is the real host behind an alternative host name. prefix is the first segment of paths under that name only.
type alias struct{ host, prefix string }

// maxPages is the maximum number of pages of a listing that Headgate reads. A status beyond them is posted once more than needed.
const maxPages = 20

// A client is a connection to the API of a forge, for one repository.
type client interface {
	statusAPI
	pullAPI
}

// All returns every kind of forge.
func All() []Forge { return slices.Clone(forges) }

// Names returns the names of all forges, sorted, including forges that share an API.
func Names() []string {
	var names []string
	for _, f := range forges {
		names = append(names, f.Name)
		if f.Also != "" {
			names = append(names, f.Also)
		}
	}
	sortNames(names)
	return names
}

// Annotators returns the Annotate functions of the forges that have one, by kind.
func Annotators() map[string]func(io.Writer, report.Report) error {
	all := map[string]func(io.Writer, report.Report) error{}
	for _, f := range forges {
		if f.Annotate != nil {
			all[string(f.Kind)] = f.Annotate
		}
	}
	return all
}

// Check returns an error if a forge does not support comments and reviews under these rules.
func (k Kind) Check(r Rules) error {
	f := k.forge()
	switch {
	case !f.listed:
		return nil
	case r.Reviews:
		return fmt.Errorf("reviews do not count on %s, which does not show when and of what they are; approve with comments", f.Name)
	case len(r.Approvers) == 0:
		return fmt.Errorf("%s does not report who may write to a repository, so only listed people may command Headgate; list the approvers", f.Name)
	}
	return nil
}

// forge returns the description of a kind, which is empty for an unknown kind.
func (k Kind) forge() Forge {
	i := slices.IndexFunc(forges, func(f Forge) bool { return f.Kind == k })
	if i < 0 {
		return Forge{}
	}
	return forges[i]
}

// header returns the Authorization header for a token.
func (f Forge) header(token string) string {
	if f.authorization == nil {
		return "Bearer " + token
	}
	return f.authorization(token)
}
