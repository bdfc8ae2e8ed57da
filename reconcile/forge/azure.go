package forge

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/report"
)

// azure is Azure DevOps, Services and Server.
type azure struct{ rest }

var (
	azureStatus  = answer{right: "the scope Code (status), and its user the right to contribute to the repository"}
	azurePull    = answer{doing: "read pull requests", right: "the scope Code (read)"}
	azureComment = answer{doing: "comment on pull requests", right: "the scope Code (write), or Pull Request Threads (read & write)"}
)

// path is that of a call: the version has to be said, and Server 2020 knows this one.
func (z azure) path(below, query string) string {
	return escaped(z.at.Owner) + "/_apis/git/repositories/" + escaped(z.at.Name) + "/" + below + "?" + query + "api-version=6.0"
}

// A gitStatus is a status of a commit, or of a pull request.
type gitStatus struct {
	ID          int64  `json:"id,omitempty"`
	IterationID int    `json:"iterationId,omitempty"`
	State       string `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"targetUrl,omitempty"`
	Context     struct {
		Genre string `json:"genre"`
		Name  string `json:"name"`
	} `json:"context"`
}

// The states; there are others, which we do not post.
var azureStates = map[report.State]string{
	report.Pending: "pending", report.Success: "succeeded", report.Failure: "failed", report.Error: "error",
}

func (z azure) list(ctx context.Context, commit string) (map[string]Status, error) {
	states := map[string]report.State{}
	for ours, theirs := range azureStates {
		states[theirs] = ours
	}
	const most = 1000 // a page
	current, newest := map[string]Status{}, map[string]int64{}
	for skip, pages := 0, 0; pages < mostPages; pages++ {
		var got struct{ Value []gitStatus }
		query := fmt.Sprintf("latestOnly=true&top=%d&skip=%d&", most, skip)
		if _, err := z.do(ctx, azureStatus, http.MethodGet, z.path("commits/"+commit+"/statuses", query), nil, &got); err != nil {
			return nil, err
		}
		for _, s := range got.Value {
			name := s.Context.Name
			if s.Context.Genre != "" {
				name = s.Context.Genre + "/" + name
			}
			if s.ID < newest[name] {
				continue
			}
			newest[name] = s.ID
			current[name] = Status{Commit: commit, Context: name, State: states[s.State], Description: s.Description, TargetURL: s.TargetURL}
		}
		if len(got.Value) < most {
			break
		}
		skip += most
	}
	return current, nil
}

func (z azure) keep(s Status) Status {
	s.Description = cut(s.Description, 255)
	return s
}

// create posts the status of a pull request first: branch policies look at that one, and what
// is listed next time is the other.
func (z azure) create(ctx context.Context, s Status) error {
	status := gitStatus{State: azureStates[s.State], Description: s.Description, TargetURL: s.TargetURL}
	genre, name, ok := strings.Cut(s.Context, "/")
	if !ok {
		genre, name = "", s.Context
	}
	status.Context.Genre, status.Context.Name = genre, name
	if s.Pull != 0 {
		iteration, err := z.iteration(ctx, s)
		if err != nil {
			return err
		}
		if iteration != 0 {
			on := status
			on.IterationID = iteration
			if _, err := z.do(ctx, azureStatus, http.MethodPost, z.path(fmt.Sprintf("pullRequests/%d/statuses", s.Pull), ""), on, nil); err != nil {
				return err
			}
		}
	}
	_, err := z.do(ctx, azureStatus, http.MethodPost, z.path("commits/"+s.Commit+"/statuses", ""), status, nil)
	return err
}

// iteration is the push that made a commit the head of a pull request: a status of that one
// says nothing of the next. It is 0 where none did.
func (z azure) iteration(ctx context.Context, s Status) (int, error) {
	var got struct {
		Value []struct {
			ID              int
			SourceRefCommit struct{ CommitID string }
		}
	}
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d/iterations", s.Pull), ""), nil, &got); err != nil {
		return 0, err
	}
	for _, is := range slices.Backward(got.Value) {
		if is.SourceRefCommit.CommitID == s.Commit {
			return is.ID, nil
		}
	}
	return 0, nil
}

// An azureRequest is a pull request as Azure DevOps tells it.
type azureRequest struct {
	PullRequestID         int
	TargetRefName         string
	LastMergeSourceCommit struct{ CommitID string }
	ForkSource            *struct{}
}

func (is azureRequest) pull() Pull {
	return Pull{Number: is.PullRequestID, Head: is.LastMergeSourceCommit.CommitID, Target: strings.TrimPrefix(is.TargetRefName, "refs/heads/"), Fork: is.ForkSource != nil}
}

func (z azure) open(ctx context.Context) ([]Pull, error) {
	const most = 100 // a page
	var all []Pull
	for pages := range mostPages {
		var got struct{ Value []azureRequest }
		query := fmt.Sprintf("searchCriteria.status=active&$top=%d&$skip=%d&", most, pages*most)
		if _, err := z.do(ctx, azurePull, http.MethodGet, z.path("pullRequests", query), nil, &got); err != nil {
			return nil, err
		}
		all = append(all, pullsOf(got.Value, azureRequest.pull)...)
		if len(got.Value) < most {
			break
		}
	}
	return all, nil
}

func (z azure) pull(ctx context.Context, number int) (Pull, error) {
	var is azureRequest
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d", number), ""), nil, &is); err != nil {
		return Pull{}, err
	}
	return is.pull(), nil
}

// self asks the organisation, which a project is in.
func (z azure) self(ctx context.Context) (string, error) {
	var is struct{ AuthenticatedUser struct{ ID string } }
	organisation := path.Dir(z.at.Owner) + "/"
	if organisation == "./" { // it is in the host
		organisation = ""
	}
	if _, err := z.do(ctx, answer{doing: "read who it is"}, http.MethodGet, escaped(organisation)+"_apis/connectionData", nil, &is); err != nil {
		return "", err
	}
	if is.AuthenticatedUser.ID == "" {
		return "", fmt.Errorf("%s: the token is of no user", z.name)
	}
	return is.AuthenticatedUser.ID, nil
}

// comments are those that start a thread.
func (z azure) comments(ctx context.Context, number int) ([]comment, error) {
	var got struct {
		Value []struct {
			ID        int64
			IsDeleted bool
			Comments  []struct {
				ID        int64
				IsDeleted bool
				Content   string
				Author    struct{ ID string }
			}
		}
	}
	if _, err := z.do(ctx, azureComment, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d/threads", number), ""), nil, &got); err != nil {
		return nil, err
	}
	var all []comment
	for _, thread := range got.Value {
		if len(thread.Comments) == 0 || thread.IsDeleted || thread.Comments[0].IsDeleted {
			continue
		}
		c := thread.Comments[0]
		all = append(all, comment{thread: thread.ID, id: c.ID, author: c.Author.ID, body: c.Content})
	}
	return all, nil
}

// comment starts a thread that is closed: a branch policy may ask that none is open, and there
// is nothing to be answered.
func (z azure) comment(ctx context.Context, number int, body string) error {
	thread := map[string]any{
		"status":   "closed",
		"comments": []any{map[string]any{"parentCommentId": 0, "commentType": "text", "content": body}},
	}
	_, err := z.do(ctx, azureComment, http.MethodPost, z.path(fmt.Sprintf("pullRequests/%d/threads", number), ""), thread, nil)
	return err
}

func (z azure) edit(ctx context.Context, number int, c comment, body string) error {
	at := z.path(fmt.Sprintf("pullRequests/%d/threads/%d/comments/%d", number, c.thread, c.id), "")
	_, err := z.do(ctx, azureComment, http.MethodPatch, at, map[string]string{"content": body}, nil)
	return err
}
