//test:package raced minutes=1
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

func panics() (watch.Interface, error) { panic("a nil map") }

// TestFollow checks where a watch resumes after each answer of an API server.
func TestFollow(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	bookmark := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	cases := map[string]struct {
		reason  string
		watches []func() (watch.Interface, error) // results of the first watches; later watches stay open
		want    []string
		trouble int
	}{
		"Stays": {
			reason: "Headgate lists once and then watches from the version of the list.",
			want:   []string{"list", "watch 1"},
		},
		"Ends": {
			reason:  "An API server ends every watch eventually; the next watch continues where it ended.",
			watches: []func() (watch.Interface, error){says(time.Minute, watch.Event{Type: watch.Bookmark, Object: bookmark})},
			want:    []string{"list", "watch 1", "watch 9"},
		},
		"Expired": {
			reason:  "If the API server no longer has our resource version, Headgate lists everything again.",
			watches: []func() (watch.Interface, error){says(0, watch.Event{Type: watch.Error, Object: &expired})},
			want:    []string{"list", "watch 1", "list", "watch 1"},
		},
		"Refused": {
			reason: "A forbidden watch is retried, and reported once.",
			watches: []func() (watch.Interface, error){
				func() (watch.Interface, error) { return nil, forbidden },
				func() (watch.Interface, error) { return nil, forbidden },
			},
			want:    []string{"list", "watch 1", "watch 1", "watch 1"},
			trouble: 1,
		},
		"Panics": {
			reason:  "A panic over an event is reported once, and Headgate lists everything again.",
			watches: []func() (watch.Interface, error){panics, panics},
			want:    []string{"list", "watch 1", "list", "watch 1", "list", "watch 1"},
			trouble: 1,
		},
		"Spins": {
			reason:  "If a proxy ends watches immediately, Headgate waits before the next one.",
			watches: []func() (watch.Interface, error){says(0), says(0)},
			want:    []string{"list", "watch 1", "watch 1", "watch 1"},
			trouble: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var log []string
				trouble := 0
				note := func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					log = append(log, fmt.Sprintf(format, args...))
				}
				watches := tc.watches
				f := feed{
					what: "things",
					list: func(context.Context, metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
						note("list")
						return nil, &metav1.ListMeta{ResourceVersion: "1"}, nil
					},
					watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
						note("watch %s", options.ResourceVersion)
						if len(watches) == 0 {
							stays := watch.NewFake()
							context.AfterFunc(ctx, stays.Stop)
							return stays, nil
						}
						next := watches[0]
						watches = watches[1:]
						return next()
					},
					fresh: func() {}, whole: func() {}, put: func(metav1.Object) {}, gone: func(metav1.Object) {},
				}
				client, err := api.Connect(&rest.Config{}, inventory.Sync{}, api.Options{})
				if err != nil {
					t.Fatal(err)
				}
				w := New(store.New(client, 0, store.Term{}), nil).watching(nil, func(_ string, err error) {
					if err != nil {
						trouble++
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				go w.follow(ctx, f)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, log); diff != "" || trouble != tc.trouble {
					t.Errorf("%s\n(-want +got):\n%s\ntrouble %d, want %d", tc.reason, diff, trouble, tc.trouble)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// says returns a function that starts a watch. The watch delivers some events and ends after a while.
func says(after time.Duration, events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: len(events) + 1})
		for _, e := range events {
			w.Action(e.Type, e.Object)
		}
		time.AfterFunc(after, w.Stop)
		return w, nil
	}
}
