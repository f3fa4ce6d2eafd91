// What a page that was just opened, or a part of it that is new, is made to do.
petlab.enhance = (root) => {
  petlab.tables(root);
  petlab.figures(root);
};
petlab.enhance(document);
petlab.learningCurves();
