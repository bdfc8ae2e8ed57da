package schema

import (
	"encoding/json"
	"slices"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// strict configures crdify: its defaults, except that a change that allows more breaks nothing, and descriptions do not
// count. It is not asked about keywords that it does not know.
var strict = config.Config{
	UnhandledEnforcement: config.EnforcementPolicyNone,
	Conversion:           config.ConversionPolicyIgnore,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
		{Name: "pattern", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"removalPolicy": "Allow"}},
		{Name: "nullable", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
	},
}

// registry holds what crdify can compare of one schema.
func registry() validations.Registry {
	r := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		property.RegisterDefault, property.RegisterDescription, property.RegisterEnum, property.RegisterNullable,
		property.RegisterPattern, property.RegisterRequired, property.RegisterType,
		property.RegisterMaximum, property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties,
		property.RegisterMinimum, property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties,
	} {
		register(r)
	}
	return r
}

type comparator = validations.Comparator[apiextensions.JSONSchemaProps]

// comparators are the comparators of crdify by keyword.
var comparators = sync.OnceValue(func() map[string]comparator {
	all, err := validations.LoadValidationsFromRegistry(registry())
	if err == nil {
		all, err = validations.ConfigureValidations(all, registry(), strict)
	}
	if err != nil {
		panic(err) // only a mistake in the fixed configuration above, which every test would find
	}
	byKeyword := make(map[string]comparator, len(all))
	for keyword, v := range all {
		if c, ok := v.(comparator); ok { // the registry holds no others
			byKeyword[keyword] = c
		}
	}
	return byKeyword
})

// crdify compares the differing keywords of one schema. It returns the ones that break, and the ones that it knows. It
// knows none of an unreadable schema.
func crdify(was, is map[string]any, differ []string) (broken, known map[string]bool) {
	broken, known = map[string]bool{}, map[string]bool{}
	from, to := propsOf(was, differ), propsOf(is, differ)
	if from == nil || to == nil {
		return broken, known
	}
	for _, keyword := range differ {
		if compares, ok := comparators()[keyword]; ok {
			known[keyword] = true
			broken[keyword] = len(compares.Compare(from, to).Errors) > 0
		}
	}
	return broken, known
}

// propsOf is as much of a schema as some keywords say.
func propsOf(schema map[string]any, keywords []string) *apiextensions.JSONSchemaProps {
	said := map[string]any{}
	for key, value := range schema {
		if slices.Contains(keywords, key) {
			said[key] = value
		}
	}
	b, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	props := new(apiextensions.JSONSchemaProps)
	if json.Unmarshal(b, props) != nil {
		return nil
	}
	return props
}
