package jsonpath_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/jsonpath"
)

func ExamplePut() {
	database := map[string]any{"status": map[string]any{"endpoint": "db.example.org"}}
	settings := map[string]any{"data": map[string]any{"url": "postgres://${endpoint}:5432"}}

	from, _ := jsonpath.One(database, "$.status.endpoint")
	to, _ := jsonpath.One(settings, "$.data.url")
	err := jsonpath.Put(settings, to, jsonpath.Get(database, from), "${endpoint}")
	fmt.Println(settings["data"], err)
	// Output: map[url:postgres://db.example.org:5432] <nil>
}
