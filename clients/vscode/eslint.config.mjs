import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "server", "src/protocol.gen.ts"] },
  {
    files: ["src/**/*.ts", "test/**/*.ts"],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "no-restricted-imports": ["error", { paths: [{ name: "vscode", message: "Only vscodeapi.ts imports vscode." }] }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      complexity: ["error", 12],
      "max-depth": ["error", 4],
      "max-lines": ["error", 400],
    },
  },
  { files: ["src/vscodeapi.ts"], rules: { "no-restricted-imports": "off" } },
  {
    // node:test's own functions return promises that its runner awaits
    files: ["test/**/*.ts"],
    rules: {
      "@typescript-eslint/no-floating-promises": [
        "error",
        { allowForKnownSafeCalls: [{ from: "package", name: ["test", "describe", "it"], package: "node:test" }] },
      ],
    },
  },
);
