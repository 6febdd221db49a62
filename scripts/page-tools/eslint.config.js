// What ESLint asks of the page's own JavaScript: errors, the house's limits, and nothing that turns text into markup
// or code, which the page's policy would block at run time.
import js from "@eslint/js";
import globals from "globals";

const MARKUP = "the policy of the page forbids markup from text; render it with html`…`";
const SINKS = ["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc", "dangerouslySetInnerHTML",
  "createContextualFragment", "parseFromString", "setHTMLUnsafe", "parseHTMLUnsafe"];
const CONFUSED = ["alert", "confirm", "event", "length", "name", "parent", "scroll", "status", "top"];

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      complexity: ["error", 20],
      curly: ["error", "multi-line"],
      "default-case-last": "error",
      eqeqeq: "error",
      "max-depth": ["error", 4],
      "max-len": ["error", { code: 120, ignoreUrls: true, ignoreTemplateLiterals: true }],
      "max-lines": ["error", 600],
      "no-console": "error",
      "no-constructor-return": "error",
      // The page escapes control characters, so it has to name them.
      "no-control-regex": "off",
      "no-eval": "error",
      "no-extend-native": "error",
      "no-implicit-coercion": ["error", { boolean: false, allow: ["+"] }],
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": "error",
      "no-restricted-globals": ["error", ...CONFUSED],
      "no-restricted-properties": [
        "error",
        ...SINKS.map((property) => ({ property, message: MARKUP })),
        { object: "document", property: "write", message: MARKUP },
        { object: "document", property: "writeln", message: MARKUP },
        { object: "document", property: "cookie", message: "the page has no cookies" },
        { object: "window", property: "alert", message: "use a toast" },
        { object: "window", property: "confirm", message: "use a dialog, which names the effect" },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: `Property[key.name=/^(${SINKS.join("|")})$/]`, message: MARKUP },
        { selector: "TemplateElement[value.raw=/javascript:/i]", message: MARKUP },
      ],
      "no-return-assign": "error",
      "no-script-url": "error",
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-throw-literal": "error",
      "no-trailing-spaces": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-unused-vars": ["error", { args: "after-used", caughtErrors: "all" }],
      "no-use-before-define": ["error", { functions: false, classes: true, variables: false }],
      "no-useless-concat": "error",
      "no-useless-rename": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-object-spread": "error",
      "prefer-promise-reject-errors": "error",
      "eol-last": "error",
      semi: ["error", "always"],
      yoda: "error",
    },
  },
];
