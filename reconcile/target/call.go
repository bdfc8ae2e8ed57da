package target

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A call is a question of a child to its parent, and an answer is its answer. Arguments and results are gob values of their own, which
// the method decodes. net/rpc does the same, but finds methods by reflection, and then the linker keeps every method of every type in
// the program: 22 MB.
type call struct {
	ID     uint64
	Method string
	Args   []byte
}

type answer struct {
	ID     uint64
	Err    string
	Result []byte
}

// A method decodes arguments and encodes a result.
type method func(args []byte) (result []byte, err error)

func methodOf[A, R any](f func(A, *R) error) method {
	return func(args []byte) ([]byte, error) {
		var (
			a A
			r R
		)
		if err := fromGob(args, &a); err != nil {
			return nil, err
		}
		if err := f(a, &r); err != nil {
			return nil, err
		}
		return toGob(r)
	}
}

func toGob(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func fromGob(data []byte, to any) error { return gob.NewDecoder(bytes.NewReader(data)).Decode(to) }

// serve answers the calls of a child, several at a time, until the child is done or gone.
func serve(from io.Reader, to io.Writer, methods map[string]method) {
	in, out := gob.NewDecoder(from), gob.NewEncoder(to)
	var (
		writing sync.Mutex
		calls   sync.WaitGroup
	)
	defer calls.Wait()
	for {
		var c call
		if in.Decode(&c) != nil {
			return
		}
		calls.Go(func() {
			a := answer{ID: c.ID}
			var err error
			if f := methods[c.Method]; f == nil {
				err = fmt.Errorf("no method %q", c.Method)
			} else {
				a.Result, err = f(c.Args)
			}
			if err != nil {
				a.Err = err.Error()
			}
			writing.Lock()
			defer writing.Unlock()
			_ = out.Encode(a) // it fails if the child is gone, which the next call shows
		})
	}
}

// A caller calls the methods of a parent.
type caller struct {
	mu      sync.Mutex
	out     *gob.Encoder
	last    uint64
	waiting map[uint64]chan answer // nil once the parent is gone
}

func newCaller(from io.Reader, to io.Writer) *caller {
	c := &caller{out: gob.NewEncoder(to), waiting: map[uint64]chan answer{}}
	go c.receive(gob.NewDecoder(from))
	return c
}

// receive gives each answer to its call until the parent is gone.
func (c *caller) receive(in *gob.Decoder) {
	for {
		var a answer
		err := in.Decode(&a)
		c.mu.Lock()
		if err != nil {
			for _, w := range c.waiting {
				close(w)
			}
			c.waiting = nil
			c.mu.Unlock()
			return
		}
		if w, is := c.waiting[a.ID]; is {
			delete(c.waiting, a.ID)
			w <- a // there is room for one
		}
		c.mu.Unlock()
	}
}

var errGone = errors.New("the process that started this one does not answer")

// Call calls a method. Calls may run at the same time.
func (c *caller) Call(method string, args, result any) error {
	raw, err := toGob(args)
	if err != nil {
		return err
	}
	answered, err := c.send(method, raw)
	if err != nil {
		return err
	}
	a, ok := <-answered
	switch {
	case !ok:
		return errGone
	case a.Err != "":
		return errors.New(a.Err)
	}
	return fromGob(a.Result, result)
}

func (c *caller) send(method string, args []byte) (<-chan answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		return nil, errGone
	}
	c.last++
	w := make(chan answer, 1)
	c.waiting[c.last] = w
	return w, c.out.Encode(call{c.last, method, args})
}
