package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgress(t *testing.T) {
	cases := map[string]struct {
		reason string
		off    bool
		lines  bool
		do     func(p *progress)
		want   string
	}{
		"Quick": {
			reason: "A phase shorter than a second is not worth a line.",
			do: func(p *progress) {
				p.Phase("fetch", 0, 0)
				time.Sleep(900 * time.Millisecond)
				p.Stop()
			},
			want: "",
		},
		"Slow": {
			reason: "One line is overwritten repeatedly and removed at the end.",
			do: func(p *progress) {
				p.Phase("fetch", 0, 0)
				time.Sleep(900 * time.Millisecond)
				p.Phase("apply", 120, 500)
				time.Sleep(250 * time.Millisecond)
				p.Stop()
			},
			want: "\r\x1b[Kapply 120/500 (1s)\r\x1b[Kapply 120/500 (1s)\r\x1b[K",
		},
		"Interrupted": {
			reason: "Other output is not mixed with the progress line.",
			do: func(p *progress) {
				p.Phase("wait", 0, 0)
				time.Sleep(1050 * time.Millisecond)
				_, _ = p.Write([]byte("warning\n"))
				time.Sleep(100 * time.Millisecond)
				p.Stop()
			},
			want: "\r\x1b[Kwait (1s)\r\x1b[Kwarning\n\r\x1b[Kwait (1s)\r\x1b[K",
		},
		"Narrow": {
			reason: "A line that wraps could not be overwritten.",
			do: func(p *progress) {
				p.Phase("a phase with a very long name", 0, 0)
				time.Sleep(1050 * time.Millisecond)
				p.Stop()
			},
			want: "\r\x1b[Ka phase with a very\r\x1b[K",
		},
		"Pipe": {
			reason: "In the log of a CI job, short work is silent, and long work is not taken for dead.",
			lines:  true,
			do: func(p *progress) {
				p.Phase("apply a kind with a very long name", 1, 156)
				time.Sleep(9900 * time.Millisecond)
				_, _ = p.Write([]byte("warning\n"))
				time.Sleep(2 * time.Second)
				p.Phase("wait", 3, 156)
				time.Sleep(9 * time.Second)
				p.Stop()
				p.Phase("fetch", 0, 0)
				time.Sleep(9900 * time.Millisecond)
				p.Stop()
			},
			want: "warning\napply a kind with a very long name 1/156 (10s)\nwait 3/156 (20s)\n",
		},
		"Log": {
			reason: "Progress does not belong into the log of a loop.",
			off:    true,
			do: func(p *progress) {
				p.Phase("wait", 0, 0)
				time.Sleep(2 * time.Second)
				p.Stop()
				_, _ = p.Write([]byte("error\n"))
			},
			want: "error\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p := &progress{w: &b, width: func() int { return 20 }, lines: tc.lines, off: tc.off}
				tc.do(p)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, b.String()); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
